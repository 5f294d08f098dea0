-- shape token: id t, space t, name t, scopes i, hash b, created i, expires i, revoked i

-- query token_list() -> token
SELECT {token} FROM token ORDER BY created, id

-- query token_add(token)
INSERT INTO token ({token}) VALUES ({:token})

-- query token_revoke(id t, revoked i)
UPDATE token SET revoked = :revoked WHERE id = :id AND revoked = 0

-- query token_stop(bit i, agent t, space t)
UPDATE token SET scopes = scopes | :bit WHERE (name = :agent OR id = :agent) AND (:space = 'main' OR space = :space) AND revoked = 0

-- query token_start(kept i, agent t, space t)
UPDATE token SET scopes = scopes & :kept WHERE (name = :agent OR id = :agent) AND (:space = 'main' OR space = :space) AND revoked = 0
