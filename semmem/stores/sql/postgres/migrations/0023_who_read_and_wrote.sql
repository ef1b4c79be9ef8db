-- Who read and wrote what: one row for each namespace of a call, without a text. Nobody changes a row, and only maintain
-- deletes one, when its days are over: it says up to which time in a setting that ends with its transaction. Only the rows
-- that a distribution has copied to the nodes may go all at once.
CREATE TABLE audit (
    namespace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    who       text,
    interface text NOT NULL,
    agent     text,
    verb      text NOT NULL,
    outcome   text NOT NULL,
    count     integer,
    ids       text[] NOT NULL,
    PRIMARY KEY (namespace, id)
);
CREATE INDEX audit_by_id ON audit (id, namespace);
CREATE INDEX audit_by_time ON audit (namespace, at);
CREATE OR REPLACE FUNCTION audit_stays() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
    RAISE EXCEPTION ''Rows of semmem.audit are neither changed nor deleted.'';
END';
CREATE OR REPLACE TRIGGER audit_unchanged BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_stays();
CREATE OR REPLACE TRIGGER audit_undeleted BEFORE DELETE ON audit FOR EACH ROW
WHEN (OLD.at < nullif(current_setting('semmem.audit_before', true), '')::timestamptz IS NOT TRUE)
EXECUTE FUNCTION audit_stays();
CREATE OR REPLACE TRIGGER audit_unemptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT
WHEN (current_setting('semmem.audit_before', true) IS DISTINCT FROM 'infinity')
EXECUTE FUNCTION audit_stays();
