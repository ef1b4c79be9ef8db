"""The store on PostgreSQL: each write is one transaction; the statements are in ``stores/sql/postgres``."""
