"""The calculator: arithmetic on exact fractions, so that 0.1 + 0.2 is 0.3; bounded, so that 9**9**9 costs nothing.

It evaluates a syntax tree of numbers, operators and named functions; nothing else of Python is reachable from it.
"""

import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable
from decimal import Context as Precision
from decimal import Decimal, Inexact
from fractions import Fraction

SUPERSCRIPT = re.compile("([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
FRACTION = re.compile(r"(\d*)([¼-¾⅐-⅞])")
"""Normalised, 3² would be 32, and 1½ 11/2."""

PLAIN = r"(?:\d[\d_]*\.?\d*|\.\d+)"
PERCENT = re.compile(rf"({PLAIN})\s*%(?=\s*(?:$|[),*/]))|\)\s*%(?=\s*(?:$|[),*/]))")
UNCLEAR = re.compile(rf"%\s*[+-]|[\d)]\s*[+-]\s*{PLAIN}\s*%(?=\s*(?:$|[),]))")
"""A percentage that is added or taken away, of one knows not what, or the rest by a number with a sign."""

MAX_CHARS = 500
MAX_BITS = 4_096
"""Numerators and denominators beyond this size are refused before they are computed."""

MAX_EXPONENT = 1_200
"""Powers of ten beyond this would have more bits than `MAX_BITS`."""

DIGITS, EXACT_DIGITS = 28, 36
"""Digits of a value that decimals cannot write exactly, and at most of one that they can."""

ROOTS = Precision(prec=40)
"""More than `EXACT_DIGITS`, so that the square of a root is rounded to what it should be."""

TOKEN = re.compile(
    r"\s*(?:(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?|(?P<name>[^\W\d]\w*)|[-+*/%(),])"
)
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
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "factorial": lambda value: factorial(value),  # defined below
    "pow": lambda base, exponent: power(base, exponent),
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": lambda value: root(value),  # defined below
}
ROUNDED: dict[str, Callable[..., float]] = {"ln": lambda value: math.log(value)} | {
    name: getattr(math, name)
    for name in (
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
CONSTANTS = {
    "pi": Fraction("3.141592653589793238462643383279502884197"),
    "e": Fraction("2.718281828459045235360287471352662497757"),
}
NO_ROOT = "a root of a negative number is not a real number"
NO_FACTORIAL = "a factorial is of a whole number that is not negative"
PERCENT_OF = (
    "what is {got!r}? Write 100 * (1 + 20/100) for 20 percent more, 20/100 for the number, 7 % (-3) for the rest"
)
SEPARATED = "write numbers without separators and leading zeros: 1234567.5, not 1,234,567.5"
TOO_LARGE = "the result would have more than a thousand digits"
KNOWN = {*EXACT, *ROUNDED, *CONSTANTS}
ONLY = f"{{got!r}} is not known here, only numbers, brackets, + - * / // % ** and {', '.join(sorted(KNOWN))}"
SPELLINGS = str.maketrans(
    {
        "×": "*",
        "·": "*",
        "÷": "/",
        "⁄": "/",
        "−": "-",
        "–": "-",
        "—": "-",
        "‐": "-",
        "^": "**",
        "，": ",",
        "、": ",",
        "π": "pi",
    }
)
ROOT = re.compile(rf"√\s*(?:(?=\()|({PLAIN}))")


class BadExpression(ValueError):
    """An expression that is not arithmetic, has no value, or is too large; the message says which."""


def calculate(expression: str) -> str:
    """Return the value of an expression as decimal digits, exact where 28 digits can be. Raises BadExpression."""
    if len(expression) > MAX_CHARS or not (text := plainly(expression)):
        raise BadExpression(f"expected an expression of 1 to {MAX_CHARS} characters, got {len(expression)}")
    try:
        check_tokens(text)
        return written(value_of(ast.parse(text, mode="eval").body, text))
    except BadExpression:
        raise
    except ZeroDivisionError:
        raise BadExpression("division by zero has no value") from None
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else error
        raise BadExpression(f"{text!r} is not arithmetic that can be computed: {why}") from None


def plainly(expression: str) -> str:
    """Write an expression in Python's signs: digits of any script, fractions, roots, percentages, names in capitals."""
    text = "".join(char for char in expression.translate(SPELLINGS) if unicodedata.category(char) != "Cf")
    text = FRACTION.sub(lambda found: f"({found[1] or 0}+{unicodedata.normalize('NFKC', found[2])})", text)
    text = unicodedata.normalize("NFKC", SUPERSCRIPT.sub(r"**\1", text)).translate(SPELLINGS).strip()
    text = re.sub(r"\d", lambda found: str(unicodedata.decimal(found.group())), text)
    text = ROOT.sub(lambda found: f"sqrt({found[1]})" if found[1] else "sqrt", text)
    if unclear := UNCLEAR.search(text):
        raise BadExpression(PERCENT_OF.format(got=text[max(unclear.start() - 8, 0) : unclear.end() + 8]))
    text = PERCENT.sub(lambda found: f"({found[1]}/100)" if found[1] else ")/100", text)
    return re.sub(r"(?<![\w.])[A-Z]\w*", lambda found: min(found.group().lower(), found.group(), key=known_first), text)


def known_first(name: str) -> bool:
    """Sort what is known here before what is not."""
    return name not in KNOWN


def check_tokens(text: str) -> None:
    """Raise BadExpression for anything but numbers, known names and operators; Python's parser sees nothing else."""
    at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        name = token and token["name"]
        if token and re.match(r"\s*0\d", token.group()):
            raise BadExpression(SEPARATED)
        if not token or (name and name not in KNOWN):
            raise BadExpression(ONLY.format(got=name or text[at:].strip()[:20]))
        at = token.end()


def value_of(node: ast.expr, text: str) -> Fraction:
    """Compute one node of the tree of `text`."""
    match node:
        case ast.Constant():
            return number(ast.get_source_segment(text, node) or "")
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return value_of(operand, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return power(value_of(left, text), value_of(right, text))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return sized(OPERATORS[type(op)](value_of(left, text), value_of(right, text)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in EXACT or name in ROUNDED:
            return applied(name, [value_of(arg, text) for arg in args])
        case ast.Tuple():
            raise BadExpression(SEPARATED)
    raise BadExpression(ONLY.format(got=ast.get_source_segment(text, node)))


def number(literal: str) -> Fraction:
    """Read a literal digit by digit; a float would change it."""
    value = Decimal(literal)
    if abs(value.adjusted()) > MAX_EXPONENT:
        raise BadExpression(TOO_LARGE)
    return sized(Fraction(value))


def applied(name: str, values: list[Fraction]) -> Fraction:
    """Apply a named function; transcendental ones are rounded to a double's 15 digits."""
    if name == "round" and len(values) == 2:
        if values[1].denominator != 1 or abs(values[1]) > MAX_EXPONENT:
            raise BadExpression(f"round takes a whole number of digits up to {MAX_EXPONENT}, got {written(values[1])}")
        return sized(Fraction(round(values[0], int(values[1]))))
    if name in EXACT:
        return sized(Fraction(EXACT[name](*values)))
    return Fraction(format(ROUNDED[name](*map(float, values)), ".15g"))


def root(value: Fraction) -> Fraction:
    """Take the square root to 40 digits."""
    if value < 0:
        raise BadExpression(NO_ROOT)
    return Fraction(ROOTS.sqrt(ROOTS.divide(Decimal(value.numerator), Decimal(value.denominator))))


def factorial(value: Fraction) -> Fraction:
    """Multiply the whole numbers up to a value."""
    if value < 0 or value.denominator != 1:
        raise BadExpression(NO_FACTORIAL)
    if value > MAX_BITS:
        raise BadExpression(TOO_LARGE)
    return sized(Fraction(math.factorial(int(value))))


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """Raise to a power: exactly for whole exponents within bounds, else as a double."""
    if exponent == Fraction(1, 2):
        return root(base)
    if exponent.denominator != 1:
        value = float(base) ** float(exponent)
        if isinstance(value, complex):
            raise BadExpression(NO_ROOT)
        return Fraction(format(value, ".15g"))
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits > 1 and bits * abs(exponent) > MAX_BITS:
        raise BadExpression(TOO_LARGE)
    return sized(base ** int(exponent))


def sized(value: Fraction) -> Fraction:
    """Return the value if it is not too large."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise BadExpression(TOO_LARGE)
    return value


def written(value: Fraction) -> str:
    """Write a value in plain decimal digits: whole and terminating ones exactly, others to 28 significant digits."""
    if value.denominator == 1:
        return str(value.numerator)
    top, bottom = Decimal(value.numerator), Decimal(value.denominator)
    try:
        quotient = Precision(prec=EXACT_DIGITS, traps=[Inexact]).divide(top, bottom)
    except Inexact:
        quotient = Precision(prec=DIGITS).divide(top, bottom)
    text = format(quotient, "f")
    return text.rstrip("0").rstrip(".") if len(text) <= 2 * EXACT_DIGITS else str(quotient)
