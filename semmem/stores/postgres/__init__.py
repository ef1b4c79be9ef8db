"""The store on PostgreSQL: one transaction a write, statements in ``stores/sql/postgres``."""
