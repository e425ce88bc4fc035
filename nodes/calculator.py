"""The calculator: arithmetic on exact fractions, so that 0.1 + 0.2 is 0.3; bounded, so that 9**9**9 costs nothing.

It evaluates a syntax tree of numbers, operators and named functions; nothing else of Python is reachable from it.
"""

import ast
import math
import operator
import unicodedata
from collections.abc import Callable
from decimal import Context as Precision
from decimal import Decimal
from fractions import Fraction

MAX_CHARS = 500
MAX_BITS = 4_096
"""Numerators and denominators beyond this size are refused before they are computed."""

DIGITS = 28
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: operator.mod,
}
EXACT: dict[str, Callable[..., Fraction | int]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
}
ROUNDED: dict[str, Callable[..., float]] = {
    name: getattr(math, name)
    for name in (
        "sqrt",
        "exp",
        "log",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "degrees",
        "radians",
    )
}
CONSTANTS = {"pi": Fraction(math.pi), "e": Fraction(math.e)}
SPELLINGS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**", "，": ",", "、": ","})


class BadExpression(ValueError):
    """An expression that is not arithmetic, has no value, or is too large; the message says which."""


def calculate(expression: str) -> str:
    """Return the value of an expression as decimal digits, exact where 28 digits can be. Raises BadExpression."""
    text = unicodedata.normalize("NFKC", expression.translate(SPELLINGS)).translate(SPELLINGS).strip()
    if not text or len(text) > MAX_CHARS:
        raise BadExpression(f"expected an expression of 1 to {MAX_CHARS} characters, got {len(text)}")
    try:
        return written(value_of(ast.parse(text, mode="eval").body))
    except BadExpression:
        raise
    except ZeroDivisionError:
        raise BadExpression("division by zero has no value") from None
    except (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise BadExpression(f"{text!r} is not arithmetic that can be computed: {error}") from None


def value_of(node: ast.expr) -> Fraction:
    """Compute one node of the tree."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return sized(Fraction(str(number)))
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return value_of(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return power(value_of(left), value_of(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return sized(OPERATORS[type(op)](value_of(left), value_of(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in EXACT or name in ROUNDED:
            return applied(name, [value_of(arg) for arg in args])
    raise BadExpression(f"only numbers, brackets, + - * / // % ** and {', '.join(sorted(EXACT | ROUNDED))} are known")


def applied(name: str, values: list[Fraction]) -> Fraction:
    """Apply a named function; transcendental ones are rounded to a double's 15 digits."""
    if name == "round" and len(values) == 2:
        return sized(Fraction(round(values[0], int(values[1]))))
    if name in EXACT:
        return sized(Fraction(EXACT[name](*values)))
    return Fraction(format(ROUNDED[name](*map(float, values)), ".15g"))


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """Raise to a power: exactly for whole exponents within bounds, else as a double."""
    if exponent.denominator != 1:
        root = float(base) ** float(exponent)
        if isinstance(root, complex):
            raise BadExpression("a root of a negative number is not a real number")
        return Fraction(format(root, ".15g"))
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits > 1 and bits * abs(exponent) > MAX_BITS:
        raise BadExpression("the result would have more than a thousand digits")
    return sized(base ** int(exponent))


def sized(value: Fraction) -> Fraction:
    """Return the value if it is not too large."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise BadExpression("the result would have more than a thousand digits")
    return value


def written(value: Fraction) -> str:
    """Write a value in plain decimal digits; whole numbers whole, others to 28 significant digits."""
    if value.denominator == 1:
        return str(value.numerator)
    quotient = Precision(prec=DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
    text = format(quotient, "f")
    return text.rstrip("0").rstrip(".") if len(text) <= 2 * DIGITS else str(quotient)
