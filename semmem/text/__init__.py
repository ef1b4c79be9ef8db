"""Texts as tokens, stems and passages."""
