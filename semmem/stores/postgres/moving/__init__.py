"""Moving a whole store on PostgreSQL: to another one, into a file, and out of it again."""
