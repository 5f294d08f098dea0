-- shape policy: version i, hash b, text t, applied i, actor t

-- query policy_latest() -> policy
SELECT {policy} FROM policy ORDER BY version DESC LIMIT 1

-- query policy_versions(most i) -> policy
SELECT {policy} FROM policy ORDER BY version DESC LIMIT :most

-- query policy_add(policy)
INSERT INTO policy ({policy}) VALUES ({:policy})
