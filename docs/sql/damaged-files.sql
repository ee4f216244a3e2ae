-- Files with errors and which, worst first: what to copy from another replica.
SELECT f.broker_id, f.moment, f.file, f.type, f.size_in_bytes, f.damaged_bytes, w.code,
       count(*) AS errors,
       min(w.position) AS first_position
FROM findings AS w
JOIN files AS f ON w.file = f.file AND w.moment IS NOT DISTINCT FROM f.moment
WHERE w.severity = 'error'
GROUP BY ALL
ORDER BY damaged_bytes DESC, errors DESC, f.file, w.code;
