-- A block of messages must find the disabled accounts among its members.
CREATE INDEX accounts_disabled ON accounts (account) WHERE flags = 1;
