"""What is remembered: a LangGraph store on Chroma, and the kinds of memory kept in it. No graphs, no models."""
