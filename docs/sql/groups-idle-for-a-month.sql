-- Consumer groups that committed nothing in the month before the newest commit of the evidence.
WITH newest AS (SELECT max(last_commit_timestamp) AS at FROM groups)
SELECT "group", state, members, offsets, last_commit_timestamp,
       (newest.at - last_commit_timestamp) // 86400000 AS days_idle
FROM groups, newest
WHERE last_commit_timestamp < newest.at - 30 * 86400000::BIGINT
ORDER BY last_commit_timestamp, "group";
