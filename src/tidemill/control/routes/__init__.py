"""HTTP routes: parse, authorise, decide, one store call, view."""

API = "/api/v1"
