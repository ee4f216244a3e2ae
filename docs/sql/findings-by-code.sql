-- What was found, by code, and where it was found first.
SELECT severity, code, count(*) AS findings,
       count(DISTINCT (broker_id, topic, partition)) AS replicas,
       min(message) AS one_of_them
FROM findings
GROUP BY severity, code
ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, findings DESC, code;
