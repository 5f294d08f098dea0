-- The hash of the nonce of the claim that holds the intent, so that the same claim sent again gets the same answer. Gone with the next move.
ALTER TABLE intent ADD COLUMN nonce bytea;
