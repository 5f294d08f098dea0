-- shape token: id t, space t, name t, scopes i, hash b, created i, expires i, revoked i

-- query token_list() -> token
SELECT {token} FROM token ORDER BY created, id

-- query token_add(token)
INSERT INTO token ({token}) VALUES ({:token})

-- query token_revoke(id t, revoked i)
UPDATE token SET revoked = :revoked WHERE id = :id AND revoked = 0
