-- As people type who know BigQuery and its differential privacy.

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, privacy_unit_column = person_id) COUNT(*) AS n FROM people;
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) region, AVG(age) AS age FROM people GROUP BY region;
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 2, max_groups_contributed = 2) status, SUM(amount, contribution_bounds_per_row => (-100, 500)) AS total FROM orders GROUP BY status;
SELECT COUNT(*) AS n FROM `people`;
-- duckdb: SELECT COUNT(*) FROM people
SELECT COUNT(*) AS n FROM `my-project.shop.people`;
-- duckdb: SELECT COUNT(*) FROM people
SELECT COUNT(*) AS n FROM `my-project`.shop.people;
SELECT COUNT(*) AS n FROM shop.people AS p WHERE p.age > 30;
SELECT `region`, COUNT(*) AS `how many` FROM `people` GROUP BY `region`;
SELECT p.`region`, AVG(p.`age`) FROM `people` AS p GROUP BY p.`region`;
SELECT COUNTIF(age > 40) AS n FROM people;
SELECT COUNTIF(smoker) / COUNT(*) AS share FROM people;
SELECT SAFE_DIVIDE(SUM(amount), SUM(quantity)) AS price FROM orders;
SELECT SAFE_DIVIDE(COUNTIF(status = 'returned'), COUNT(*)) AS share FROM orders;
-- duckdb: SELECT SUM(amount) / COUNT(*) FROM orders
SELECT IEEE_DIVIDE(SUM(amount), COUNT(*)) AS mean FROM orders;
SELECT IF(age < 18, 'minor', 'adult') AS class, COUNT(*) AS n FROM people GROUP BY class;
-- unlike: a row whose key is NULL is in no group
SELECT IFNULL(region, 'none') AS region, COUNT(*) AS n FROM people GROUP BY region;
SELECT AVG(IF(smoker, 1, 0)) AS share FROM people;
SELECT DATE_TRUNC(day, MONTH) AS month, SUM(amount) AS total FROM orders GROUP BY month ORDER BY month;
SELECT DATE_TRUNC(day, QUARTER) AS q, COUNT(*) AS n FROM orders GROUP BY q;
SELECT TIMESTAMP_TRUNC(placed, HOUR) AS h, COUNT(*) AS n FROM orders WHERE placed < '2024-01-20' GROUP BY h;
SELECT DATETIME_TRUNC(placed, MONTH) AS m, COUNT(*) AS n FROM orders GROUP BY m;
SELECT DATE_DIFF(DATE '2025-12-31', day, DAY) AS ago, COUNT(*) AS n FROM orders WHERE day > '2025-10-01' GROUP BY ago;
SELECT AVG(DATE_DIFF(DATE '2025-01-01', born, YEAR)) AS years FROM people;
SELECT DATE_DIFF(day, DATE '2024-01-01', MONTH) AS months, COUNT(*) AS n FROM orders GROUP BY months;
SELECT COUNT(*) FROM orders WHERE DATE_ADD(day, INTERVAL 1 WEEK) > DATE '2025-01-01';
SELECT COUNT(*) FROM orders WHERE DATE_SUB(day, INTERVAL 1 YEAR) >= DATE '2024-02-28';
SELECT COUNT(*) FROM orders WHERE day >= DATE_SUB(DATE '2025-12-31', INTERVAL 90 DAY);
SELECT COUNT(*) FROM orders WHERE placed < TIMESTAMP_ADD(TIMESTAMP '2024-05-01 00:00:00', INTERVAL 12 HOUR);
SELECT EXTRACT(YEAR FROM day) AS y, EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n FROM orders GROUP BY y, m;
-- duckdb: SELECT dayofweek(day) + 1 AS d, COUNT(*) AS n FROM orders GROUP BY d
SELECT EXTRACT(DAYOFWEEK FROM day) + 1 AS d, COUNT(*) AS n FROM orders GROUP BY d;
SELECT EXTRACT(DAYOFYEAR FROM day) AS d, COUNT(*) AS n FROM orders WHERE day < '2024-03-05' GROUP BY d;
-- duckdb: SELECT placed::DATE AS d, COUNT(*) AS n FROM orders WHERE placed < '2024-02-01' GROUP BY d
SELECT EXTRACT(DATE FROM placed) AS d, COUNT(*) AS n FROM orders WHERE placed < '2024-02-01' GROUP BY d;
SELECT DATE(placed) AS d, COUNT(*) AS n FROM orders WHERE placed >= '2024-02-01' AND placed < '2024-03-05' GROUP BY d;
SELECT COUNT(*) FROM orders WHERE day = DATE(2024, 2, 29);
SELECT FORMAT_DATE('%Y-%m', day) AS month, COUNT(*) AS n FROM orders GROUP BY month;
SELECT FORMAT_DATE('%A', day) AS weekday, COUNT(*) AS n FROM orders GROUP BY weekday;
SELECT FORMAT_TIMESTAMP('%H', placed) AS hour, COUNT(*) AS n FROM orders GROUP BY hour;
SELECT FORMAT_DATETIME('%d/%m/%Y', placed) AS d, COUNT(*) AS n FROM orders WHERE day < '2024-01-20' GROUP BY d;
SELECT LAST_DAY(day) AS d, COUNT(*) AS n FROM orders GROUP BY d;
SELECT LAST_DAY(day, MONTH) AS d, COUNT(*) AS n FROM orders GROUP BY d;
SELECT UNIX_SECONDS(placed) > 1720000000 AS late, COUNT(*) AS n FROM orders GROUP BY late;
SELECT COUNT(*) FROM orders WHERE PARSE_DATE('%Y-%m-%d', '2024-02-29') = day;
SELECT CAST(age AS STRING) AS age, COUNT(*) AS n FROM people GROUP BY age;
SELECT CAST(quantity AS FLOAT64) / 2 AS half, COUNT(*) AS n FROM orders GROUP BY half;
SELECT SUM(CAST(gift AS INT64)) AS gifts FROM orders;
SELECT SAFE_CAST(note AS INT64) AS number, COUNT(*) AS n FROM orders WHERE note = '7' GROUP BY number;
-- not yet: LOGICAL_OR | COUNT_IF
SELECT LOGICAL_OR(smoker) FROM people;
SELECT APPROX_QUANTILES(age, 4)[OFFSET(2)] AS median FROM people;
-- duckdb: SELECT quantile_disc(age, [0, 0.25, 0.5, 0.75, 1]) FROM people
SELECT APPROX_QUANTILES(age, 4) AS quartiles FROM people;
-- duckdb: SELECT quantile_disc(age, [0, 0.5, 1]) FROM people
SELECT ANON_QUANTILES(age, 2) AS halves FROM people;
SELECT APPROX_COUNT_DISTINCT(product) AS products FROM orders;
SELECT APPROX_COUNT_DISTINCT(person_id) AS customers FROM orders;
-- duckdb: SELECT COUNT(*) FROM people
SELECT ANON_COUNT(*) AS n FROM people;
-- duckdb: SELECT SUM(amount), AVG(amount) FROM orders
SELECT ANON_SUM(amount) AS total, ANON_AVG(amount) AS mean FROM orders;
-- unlike: one person's sum is clamped
SELECT ANON_SUM(amount CLAMPED BETWEEN 0 AND 100) AS total FROM orders;
-- duckdb: SELECT VAR_POP(height), STDDEV_POP(height) FROM people
SELECT ANON_VAR_POP(height) AS v, ANON_STDDEV_POP(height) AS s FROM people;
-- duckdb: SELECT COUNT(DISTINCT person_id) FROM orders
SELECT ANON_COUNT(DISTINCT person_id) AS n FROM orders;
SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1, delta = 1e-6) region, ANON_COUNT(*) AS n FROM people GROUP BY region;
SELECT VAR_SAMP(height) AS v, STDDEV(height) AS s, VARIANCE(height) AS w FROM people;
SELECT CORR(amount, quantity) AS r, COVAR_POP(amount, quantity) AS c FROM orders;
SELECT PERCENTILE_CONT(amount, 0.5) AS median FROM orders;
SELECT COUNT(*) FROM people WHERE REGEXP_CONTAINS(name, r'^[A-C]');
SELECT COUNT(*) FROM people WHERE REGEXP_CONTAINS(name, '(?i)ann');
SELECT COUNT(*) FROM people WHERE STARTS_WITH(name, 'A') OR ENDS_WITH(name, 'a');
SELECT COUNT(*) FROM people WHERE STRPOS(name, ' ') > 3;
SELECT SUBSTR(name, 1, 1) AS initial, COUNT(*) AS n FROM people GROUP BY initial;
SELECT CHAR_LENGTH(name) AS letters, COUNT(*) AS n FROM people GROUP BY letters;
SELECT CONCAT(sex, CAST(age AS STRING)) AS cell, COUNT(*) AS n FROM people GROUP BY cell;
SELECT TRIM(note) AS note, COUNT(*) AS n FROM orders WHERE note LIKE '%card%' GROUP BY note;
SELECT LOWER(status) AS status, SUM(amount) AS amount FROM orders GROUP BY 1;
-- not yet: INITCAP | declared
SELECT INITCAP(name) = name AS proper, COUNT(*) AS n FROM people GROUP BY proper;
SELECT GREATEST(quantity, 1) AS at_least_one, COUNT(*) AS n FROM orders GROUP BY 1;
SELECT MOD(age, 5) AS rest, COUNT(*) AS n FROM people GROUP BY rest;
SELECT DIV(age, 20) AS class, COUNT(*) AS n FROM people GROUP BY class;
SELECT TRUNC(amount, 0) AS euros, COUNT(*) AS n FROM orders WHERE amount BETWEEN 10 AND 30 GROUP BY euros;
-- duckdb: SELECT CASE WHEN age < 18 THEN 0 WHEN age < 40 THEN 1 WHEN age < 65 THEN 2 WHEN age >= 65 THEN 3 END AS c, COUNT(*) FROM people GROUP BY c
SELECT RANGE_BUCKET(age, [18, 40, 65]) AS class, COUNT(*) AS n FROM people GROUP BY class;
SELECT POW(SUM(quantity), 2) AS squared FROM orders;
-- duckdb: SELECT LN(SUM(amount)) FROM orders
SELECT SAFE.LN(SUM(amount)) AS ln FROM orders;
SELECT CASE sex WHEN 'f' THEN 'female' WHEN 'm' THEN 'male' ELSE 'other' END AS sex, COUNT(*) AS n FROM people GROUP BY 1;
SELECT status, COUNT(DISTINCT person_id) AS people FROM orders GROUP BY status HAVING people > 1;
SELECT p.region, SUM(o.amount) AS total FROM shop.people p JOIN shop.orders o USING (person_id) WHERE o.status != 'open' GROUP BY p.region;
WITH big AS (SELECT person_id FROM orders WHERE amount > 40) SELECT COUNT(*) AS n FROM people WHERE person_id IN (SELECT person_id FROM big);
SELECT COUNT(*) FROM people WHERE region IN UNNEST(['n', 's']);
SELECT COUNT(*) AS n FROM people WHERE born BETWEEN '1980-02-29' AND '2000-02-29';
SELECT SUM(amount) AS total, AVG(quantity) AS mean, COUNT(*) AS n, FROM orders;
SELECT EXTRACT(WEEK FROM day) AS week, COUNT(*) AS n FROM orders WHERE EXTRACT(YEAR FROM day) = 2025 GROUP BY week;
-- duckdb: SELECT week(day) AS week, COUNT(*) AS n FROM orders WHERE isoyear(day) = 2025 GROUP BY week
SELECT EXTRACT(ISOWEEK FROM day) AS week, COUNT(*) AS n FROM orders WHERE EXTRACT(ISOYEAR FROM day) = 2025 GROUP BY week;
SELECT AVG(ACOS(0.5) * quantity) AS x FROM orders;
-- not yet: BIT_COUNT | x % 2
SELECT BIT_COUNT(quantity) AS bits, COUNT(*) FROM orders GROUP BY bits;
-- refused: ANY_VALUE
SELECT region, ANY_VALUE(name) FROM people GROUP BY region;
-- refused: A list of values
SELECT ARRAY_AGG(name LIMIT 3) FROM people;
-- refused: current date
SELECT COUNT(*) FROM orders WHERE day > DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY);
-- refused: single quotes
SELECT COUNT(*) FROM people WHERE region = "n";
-- not yet: Nothing ties the list 'x' | ON t.x = k.x
SELECT COUNT(*) FROM people, UNNEST([1, 2, 3]) AS x;
-- refused: UNNEST takes one list of values | UNNEST(['a', 'b'])
SELECT COUNT(*) FROM people p, UNNEST(p.name) AS x;
-- refused: SELECT *
SELECT * EXCEPT (name) FROM people;
-- refused: RAND is
SELECT COUNT(*) FROM people WHERE RAND() < 0.1;
-- refused: APPROX_TOP_COUNT
SELECT APPROX_TOP_COUNT(product, 3) FROM orders;
-- refused: 'peple'
SELECT COUNT(*) FROM shop.peple;
-- refused: The privacy unit is not 'order_id'
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = order_id) COUNT(*) FROM orders;
SELECT region, COUNT(*) AS n FROM people GROUP BY region QUALIFY RANK() OVER (ORDER BY n DESC) = 1;
SELECT DISTINCT region, COUNT(*) OVER (PARTITION BY region) AS n FROM people;
SELECT status, COUNT(*) AS n FROM (SELECT * FROM `shop.orders` WHERE TRUE QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY placed) = 1) GROUP BY status;
-- duckdb: SELECT AVG(date_sub('hour', TIMESTAMP '2024-01-01 00:20:00', placed)) AS s FROM orders
SELECT AVG(TIMESTAMP_DIFF(placed, TIMESTAMP '2024-01-01 00:20:00', HOUR)) AS s FROM orders;
-- duckdb: SELECT AVG(date_sub('day', TIMESTAMP '2024-06-01 12:00:00', placed)) AS s FROM orders
SELECT AVG(TIMESTAMP_DIFF(placed, TIMESTAMP '2024-06-01 12:00:00', DAY)) AS s FROM orders;
-- duckdb: SELECT COUNT(*) FROM orders WHERE CAST(placed AS TIME) < '12:00:00'
SELECT COUNT(*) FROM orders WHERE EXTRACT(TIME FROM placed) < '12:00:00';
-- duckdb: SELECT COUNT(*) FROM orders WHERE CAST(placed AS TIME) < '12:00:00'
SELECT COUNT(*) FROM orders WHERE TIME(placed) < '12:00:00';
-- duckdb: SELECT k, COUNT(p.person_id) FROM UNNEST(['n', 's', 'e']) AS k LEFT JOIN people p ON p.region = k GROUP BY k
SELECT k, COUNT(p.person_id) AS n FROM UNNEST(['n', 's', 'e']) AS k LEFT JOIN people p ON p.region = k GROUP BY k;
-- duckdb: SELECT k, COUNT(*) FROM people p, UNNEST(['n', 's']) AS k WHERE p.region = k GROUP BY k
SELECT k, COUNT(*) AS n FROM people p, UNNEST(['n', 's']) AS k WHERE p.region = k GROUP BY k;
-- duckdb: SELECT q, COUNT(o.order_id) FROM range(1, 8) AS q LEFT JOIN orders o ON o.quantity = q GROUP BY q
SELECT q, COUNT(o.order_id) AS n FROM UNNEST(GENERATE_ARRAY(1, 7)) AS q LEFT JOIN orders o ON o.quantity = q GROUP BY q;
-- duckdb: SELECT CAST(m AS DATE), COUNT(o.order_id) FROM generate_series(DATE '2024-01-01', DATE '2024-06-01', INTERVAL 1 MONTH) AS t(m) LEFT JOIN orders o ON date_trunc('month', o.day) = m GROUP BY m
SELECT m, COUNT(o.order_id) AS n FROM UNNEST(GENERATE_DATE_ARRAY('2024-01-01', '2024-06-01', INTERVAL 1 MONTH)) AS m LEFT JOIN orders o ON DATE_TRUNC(o.day, MONTH) = m GROUP BY m;
WITH keys AS (SELECT 'n' AS r UNION ALL SELECT 's') SELECT keys.r, COUNT(p.person_id) AS n FROM keys LEFT JOIN people p ON p.region = keys.r GROUP BY keys.r;
-- duckdb: SELECT stddev_pop(least(greatest(height, 160), 180)), var_pop(least(greatest(height, 160), 180)) FROM people WHERE height IS NOT NULL
SELECT ANON_STDDEV_POP(height CLAMPED BETWEEN 160 AND 180) AS s, ANON_VAR_POP(height CLAMPED BETWEEN 160 AND 180) AS v FROM people;
-- unlike: quantiles are those of a tree
SELECT ANON_QUANTILES(age, 4 CLAMPED BETWEEN 18 AND 65) AS quartiles FROM people;
