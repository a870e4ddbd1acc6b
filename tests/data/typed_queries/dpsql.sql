-- As people type for dashboards in the manner of DPSQL+: groups with a least size, ratios, several measures at once.

SELECT region, COUNT(*) AS n, AVG(age) AS age, AVG(height) AS height FROM people GROUP BY region HAVING COUNT(*) >= 2;
SELECT region, sex, COUNT(DISTINCT person_id) AS people FROM people GROUP BY region, sex HAVING COUNT(DISTINCT person_id) >= 1;
SELECT COUNT(DISTINCT person_id) AS buyers, COUNT(*) AS orders, COUNT(*) * 1.0 / COUNT(DISTINCT person_id) AS per_buyer FROM orders;
SELECT status, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean, VAR_POP(amount) AS spread FROM orders GROUP BY status;
SELECT product, COUNT(*) AS n, SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) AS returned FROM orders GROUP BY product ORDER BY n DESC;
SELECT product, AVG(CASE WHEN status = 'returned' THEN 1.0 ELSE 0.0 END) AS rate FROM orders GROUP BY product;
-- unlike: a sum of no rows is 0
SELECT product, 100 * SUM(CASE WHEN gift THEN 1 END) / COUNT(*) AS percent FROM orders GROUP BY product;
SELECT EXTRACT(YEAR FROM day) AS y, product, SUM(quantity) AS items FROM orders GROUP BY y, product ORDER BY y, product;
SELECT CASE WHEN quantity = 0 THEN 'none' WHEN quantity = 1 THEN 'one' ELSE 'many' END AS q, COUNT(*) AS n FROM orders GROUP BY q;
SELECT AVG(quantity) AS q FROM orders WHERE day BETWEEN '2024-02-28' AND '2024-03-01';
SELECT COUNT(*) AS n FROM orders WHERE day = '2024-02-29';
SELECT SUM(amount) AS total FROM orders WHERE amount < 0;
SELECT COUNT(*) AS n FROM orders WHERE amount <= -5.5 OR amount >= 99.99;
SELECT COUNT(*) AS n FROM people WHERE name = 'Zoë Ångström';
SELECT COUNT(*) AS n FROM people WHERE name LIKE '李%';
SELECT COUNT(*) AS n FROM people WHERE name LIKE '_nn%';
SELECT COUNT(*) AS n FROM people WHERE LOWER(name) LIKE '%straße%';
SELECT COUNT(*) AS n FROM people WHERE LENGTH(name) = 2;
SELECT name, COUNT(*) AS n FROM people GROUP BY name;
SELECT product, status, COUNT(*) AS n FROM orders GROUP BY product, status HAVING COUNT(*) > 0 AND SUM(amount) > 0;
SELECT region, COUNT(*) AS n FROM people WHERE balance < 0 GROUP BY region ORDER BY n DESC, region;
SELECT region, SUM(balance) AS b FROM people GROUP BY region ORDER BY b NULLS LAST;
SELECT AVG(balance) AS b, MEDIAN(balance) AS m FROM people;
SELECT region, MEDIAN(age) AS m FROM people GROUP BY region;
SELECT age BETWEEN 30 AND 50 AS middle, COUNT(*) AS n FROM people GROUP BY middle;
SELECT COUNT(*) AS n FROM people p JOIN orders o USING (person_id) WHERE o.day > p.joined;
SELECT p.region, o.product, COUNT(*) AS n FROM people p JOIN orders o USING (person_id) GROUP BY p.region, o.product;
SELECT p.sex, AVG(o.amount) AS mean FROM orders o LEFT JOIN people p ON p.person_id = o.person_id GROUP BY p.sex;
SELECT ship_to = region AS home, COUNT(*) AS n FROM people JOIN orders USING (person_id) GROUP BY home;
SELECT COUNT(DISTINCT p.region) AS regions FROM people p JOIN orders o ON o.person_id = p.person_id;
SELECT AVG(orders) AS mean, MAX(orders) AS most FROM (SELECT person_id, COUNT(*) AS orders FROM orders GROUP BY person_id) t;
SELECT COUNT(*) AS loyal FROM (SELECT person_id FROM orders GROUP BY person_id HAVING COUNT(*) >= 3) t;
SELECT COUNT(*) AS n FROM (SELECT person_id, MIN(day) AS first_day FROM orders GROUP BY person_id) t WHERE first_day >= '2024-06-01';
SELECT DATE_TRUNC('month', first_day) AS cohort, COUNT(*) AS n FROM (SELECT person_id, MIN(day) AS first_day FROM orders GROUP BY person_id) t GROUP BY cohort;
SELECT COUNT(*) AS n FROM (SELECT person_id, MAX(amount) - MIN(amount) AS span FROM orders GROUP BY person_id) t WHERE span > 20;
SELECT r.country, p.sex, COUNT(*) AS n FROM people p, regions r WHERE r.code = p.region GROUP BY r.country, p.sex;
SELECT COUNT(*) AS n FROM people WHERE region IN (SELECT code FROM regions WHERE population > 1000);
SELECT COUNT(*) AS n FROM people WHERE region NOT IN (SELECT code FROM regions WHERE country = 'A');
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT MIN(population) / 100 FROM regions);
SELECT SUM(amount) / 1000 AS thousands FROM orders;
SELECT ROUND(AVG(amount)) AS mean, FLOOR(AVG(amount)) AS low, CEIL(AVG(amount)) AS high FROM orders;
SELECT NULLIF(SUM(quantity), 0) AS q, COALESCE(SUM(amount), 0) AS a FROM orders WHERE status = 'sent';
SELECT CAST(COUNT(*) AS VARCHAR) AS n FROM people;
SELECT COUNT(*) > 5 AS enough FROM people;
SELECT region, CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END AS size FROM people GROUP BY region;
SELECT SUM(quantity) AS q, SUM(quantity) FILTER (WHERE gift) AS g, SUM(quantity) FILTER (WHERE gift) / SUM(quantity) AS share FROM orders;
SELECT STDDEV(amount) / AVG(amount) AS variation FROM orders WHERE amount > 0;
SELECT product, APPROX_QUANTILE(amount, 0.5) AS m FROM orders GROUP BY product;
SELECT status, product, SUM(amount) AS total FROM orders GROUP BY GROUPING SETS ((status), (product), ());
SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) AS n FROM orders GROUP BY ROLLUP (y, m);
SELECT COUNT(*) AS n FROM orders WHERE EXTRACT(DOW FROM day) IN (0, 6);
SELECT EXTRACT(HOUR FROM placed) < 12 AS morning, SUM(amount) AS total FROM orders GROUP BY morning;
SELECT COUNT(*) AS n FROM orders WHERE STRFTIME(day, '%m-%d') = '02-29';
SELECT TIME_BUCKET(INTERVAL 1 MONTH, day) AS m, COUNT(*) AS n FROM orders GROUP BY m;
SELECT COUNT(*) AS n FROM orders WHERE CAST(placed AS TIME) BETWEEN TIME '08:00:00' AND TIME '17:00:00';
SELECT day, COUNT(*) AS n FROM orders WHERE day BETWEEN '2024-02-27' AND '2024-03-02' GROUP BY day ORDER BY day;
SELECT born, COUNT(*) AS n FROM people WHERE born >= '2000-02-28' AND born <= '2000-03-01' GROUP BY born;
SELECT gift, smoker, COUNT(*) AS n FROM people JOIN orders USING (person_id) GROUP BY gift, smoker;
-- duckdb: SELECT IFNULL(region, 'none') AS r, COUNT(*) AS n FROM people GROUP BY 1
SELECT NVL(region, 'none') AS r, COUNT(*) AS n FROM people GROUP BY NVL(region, 'none');
-- duckdb: SELECT CASE sex WHEN 'f' THEN 'woman' WHEN 'm' THEN 'man' ELSE 'other' END AS s, COUNT(*) FROM people GROUP BY s
SELECT DECODE(sex, 'f', 'woman', 'm', 'man', 'other') AS s, COUNT(*) AS n FROM people GROUP BY 1;
-- duckdb: SELECT IF(height IS NULL, 'unknown', 'known') AS h, COUNT(*) AS n FROM people GROUP BY 1
SELECT NVL2(height, 'known', 'unknown') AS h, COUNT(*) AS n FROM people GROUP BY 1;
-- duckdb: SELECT SUM(amount) FROM orders
SELECT ZEROIFNULL(SUM(amount)) AS total FROM orders;
-- duckdb: SELECT AVG(COALESCE(height, 0)) FROM people
SELECT AVG(ZEROIFNULL(height)) AS h FROM people;
-- duckdb: SELECT NULLIF(quantity, 0) AS q, COUNT(*) AS n FROM orders GROUP BY q
SELECT NULLIFZERO(quantity) AS q, COUNT(*) AS n FROM orders GROUP BY q;
-- duckdb: SELECT DATE '2024-02-29' = day AS leap, COUNT(*) AS n FROM orders GROUP BY leap
SELECT TO_DATE('2024-02-29') = day AS leap, COUNT(*) AS n FROM orders GROUP BY leap;
-- duckdb: SELECT STRFTIME(day, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT DATE_FORMAT(day, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m;
-- not yet: MONTHS_BETWEEN | DATE_DIFF('month'
SELECT MONTHS_BETWEEN(day, DATE '2024-01-01') > 6 AS late, COUNT(*) AS n FROM orders GROUP BY late;
-- not yet: ADD_MONTHS | INTERVAL 1 MONTH
SELECT ADD_MONTHS(day, 1) > '2024-03-01' AS late, COUNT(*) AS n FROM orders GROUP BY late;
SELECT WEEKOFYEAR(day) AS w, COUNT(*) AS n FROM orders WHERE YEAR(day) = 2024 GROUP BY w;
SELECT DAYOFMONTH(day) AS d, COUNT(*) AS n FROM orders GROUP BY d;
-- duckdb: SELECT REGEXP_MATCHES(name, '^[A-Z]') AS latin, COUNT(*) AS n FROM people GROUP BY latin
SELECT REGEXP_LIKE(name, '^[A-Z]') AS latin, COUNT(*) AS n FROM people GROUP BY latin;
-- not yet: ARRAY_LENGTH | LENGTH(REPLACE
SELECT ARRAY_LENGTH(SPLIT(name, ' ')) AS words, COUNT(*) AS n FROM people GROUP BY words;
-- refused: ROW_NUMBER over rows of several people | PARTITION BY person_id
SELECT COUNT(*) AS n FROM (SELECT person_id, ROW_NUMBER() OVER (ORDER BY day) AS k FROM orders) t WHERE k = 1;
-- refused: names the units
SELECT name, person_id, COUNT(*) FROM people GROUP BY name, person_id;
-- refused: outside an aggregate
SELECT region, name, COUNT(*) FROM people GROUP BY region;
-- refused: outside an aggregate
SELECT COUNT(*) FROM people ORDER BY age;
-- refused: HAVING
SELECT COUNT(*) AS n FROM people WHERE AVG(age) > 3;
-- refused: There is no table 'customers'
SELECT COUNT(*) FROM customers;
-- refused: not SQL
SELECT COUNT(* FROM people;
-- refused: stands behind
SELECT region, COUNT(*) FROM people GROUP BY region WHERE age > 3;
-- refused: A number stands where a text belongs | region = '1'
SELECT COUNT(*) FROM people WHERE region = 1;
-- refused: UNION
SELECT COUNT(*) FROM (SELECT age FROM people UNION SELECT quantity FROM orders) t;
SELECT COUNT(*) AS n FROM (SELECT person_id, amount, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k FROM orders) t WHERE k = 1;
-- duckdb: SELECT DISTINCT COUNT(*) AS n FROM people WHERE region IS NOT NULL GROUP BY region
SELECT DISTINCT COUNT(*) AS n FROM people GROUP BY region;
