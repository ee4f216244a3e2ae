-- Consumer groups that committed nothing in the month before the newest commit of the evidence.
WITH newest AS (SELECT max(last_commit_timestamp) AS latest FROM groups)
SELECT "group", state, members, offsets, last_commit_timestamp,
       CAST(floor((newest.latest - last_commit_timestamp) / 86400000) AS BIGINT) AS days_idle
FROM groups, newest
WHERE last_commit_timestamp < newest.latest - 2592000000
ORDER BY last_commit_timestamp, "group";
