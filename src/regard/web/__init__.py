"""The page and its HTTP API: the operations of regard.web.operations, one route for each, behind a guard."""
