"""What happens in a turn: the state, the context, the five nodes, the tool engine and its tools, the prompts."""
