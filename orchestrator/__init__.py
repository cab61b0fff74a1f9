"""Decides: pure stages (router, fusion, filters, membership) and the thin services that join them."""
