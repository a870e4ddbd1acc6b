-- As people type who used Qrlew: joins and CTEs in the manner of Postgres, over the protected tables of one person.

SELECT count(*) FROM orders;
SELECT sum(amount) AS s FROM orders WHERE amount > 10;
SELECT avg(amount) AS m, stddev(amount) AS s FROM orders;
-- duckdb: SELECT stddev(amount) AS s, variance(amount) AS v FROM orders
SELECT std(amount) AS s, var(amount) AS v FROM orders;
SELECT status, count(order_id) AS n FROM orders GROUP BY status;
SELECT count(order_id) AS n FROM orders;
SELECT count(DISTINCT order_id) AS n FROM orders;
SELECT count(o.order_id) AS n FROM people AS p LEFT JOIN orders AS o ON p.person_id = o.person_id;
WITH t AS (SELECT * FROM orders WHERE quantity > 1) SELECT sum(amount) AS s FROM t;
WITH joined AS (SELECT p.region AS region, o.amount AS amount FROM people AS p JOIN orders AS o ON (p.person_id = o.person_id)) SELECT region, sum(amount) AS total FROM joined GROUP BY region;
WITH t1 AS (SELECT person_id, amount FROM orders), t2 AS (SELECT person_id, age FROM people) SELECT sum(t1.amount) AS s FROM t1 JOIN t2 ON t1.person_id = t2.person_id WHERE t2.age > 30;
SELECT a.status, count(*) AS n FROM orders a JOIN orders b ON a.person_id = b.person_id AND a.day < b.day GROUP BY a.status;
SELECT CASE WHEN amount > 50 THEN 'high' WHEN amount > 10 THEN 'middle' ELSE 'low' END AS class, count(*) AS n FROM orders GROUP BY CASE WHEN amount > 50 THEN 'high' WHEN amount > 10 THEN 'middle' ELSE 'low' END;
SELECT sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END) AS paid, sum(CASE WHEN status = 'open' THEN amount END) AS open FROM orders;
SELECT extract(month FROM day) AS m, sum(amount) AS s FROM orders GROUP BY extract(month FROM day);
SELECT extract(hour FROM placed) AS h, avg(amount) AS s FROM orders GROUP BY h;
SELECT date_trunc('year', placed) AS y, count(*) AS n FROM orders GROUP BY y;
SELECT count(*) AS n FROM orders WHERE day > CAST('2024-06-30' AS DATE);
SELECT count(*) AS n FROM orders WHERE placed > CAST('2024-06-30 12:00:00' AS TIMESTAMP);
SELECT cast(quantity AS text) AS q, count(*) AS n FROM orders GROUP BY q;
SELECT cast(amount AS integer) AS a, count(*) AS n FROM orders WHERE amount BETWEEN 0 AND 30 GROUP BY a;
SELECT round(amount, 1) AS a, count(*) AS n FROM orders WHERE amount BETWEEN 0 AND 5 GROUP BY a;
SELECT sign(balance) AS s, sum(balance) AS b FROM people GROUP BY s;
SELECT concat(region, sex) AS cell, count(*) AS n FROM people GROUP BY cell;
SELECT lower(name) AS name, count(*) AS n FROM people GROUP BY lower(name);
SELECT substr(name, 1, 3) AS start, count(*) AS n FROM people GROUP BY start;
-- duckdb: SELECT instr(name, 'a') AS p, count(*) AS n FROM people GROUP BY p
SELECT position('a' IN name) AS at, count(*) AS n FROM people GROUP BY at;
SELECT char_length(name) AS l, avg(age) AS a FROM people GROUP BY l;
-- not yet: MD5 | itself
SELECT md5(name) AS m, count(*) AS n FROM people GROUP BY m;
SELECT count(*) AS n FROM people WHERE region LIKE 'n';
SELECT region, count(*) AS n FROM people WHERE region IN ('n', 's') GROUP BY region;
SELECT is_null, count(*) AS n FROM (SELECT height IS NULL AS is_null FROM people) AS t GROUP BY is_null;
SELECT avg(s) AS mean, stddev(s) AS dev FROM (SELECT person_id, sum(amount) AS s FROM orders GROUP BY person_id) AS t;
SELECT n, count(*) AS people FROM (SELECT person_id, count(*) AS n FROM orders GROUP BY person_id) AS t GROUP BY n ORDER BY n;
SELECT p.sex, avg(t.total) AS mean FROM people p JOIN (SELECT person_id, sum(amount) AS total FROM orders GROUP BY person_id) t ON t.person_id = p.person_id GROUP BY p.sex;
SELECT region, count(DISTINCT p.person_id) AS n FROM people p JOIN orders o ON p.person_id = o.person_id WHERE o.amount > 20 GROUP BY region;
SELECT r.name, sum(o.amount) AS total FROM orders o JOIN regions r ON o.ship_to = r.code GROUP BY r.name;
SELECT r.country, count(DISTINCT o.person_id) AS n FROM orders o LEFT JOIN regions r ON o.ship_to = r.code GROUP BY r.country;
SELECT r.name, count(p.person_id) AS n FROM regions r LEFT JOIN people p ON p.region = r.code GROUP BY r.name;
SELECT r.name, count(p.person_id) AS n FROM people p RIGHT JOIN regions r ON p.region = r.code GROUP BY r.name;
-- not yet: rows of r that nobody meets | COUNT(p.person_id)
SELECT r.name, count(*) AS n FROM people p RIGHT JOIN regions r ON p.region = r.code GROUP BY r.name;
SELECT sum(amount * (1 + quantity / 10.0)) AS x FROM orders;
SELECT sum(exp(-quantity)) AS x FROM orders;
SELECT sum(sqrt(abs(amount))) AS x FROM orders;
SELECT sum(log(quantity)) AS x FROM orders WHERE quantity > 0;
SELECT sum(log(2, quantity)) AS x FROM orders WHERE quantity > 0;
SELECT avg(sin(quantity) * cos(quantity)) AS x FROM orders;
SELECT sum(ceil(amount)) AS c, sum(floor(amount)) AS f FROM orders;
SELECT median(amount) AS m FROM orders;
SELECT min(amount) AS low, max(amount) AS high FROM orders;
SELECT count(*) AS n FROM orders WHERE quantity BETWEEN 2 AND 4 AND NOT (status = 'open' OR gift);
SELECT u.kind, count(*) AS n FROM (SELECT person_id, 'person' AS kind FROM people UNION ALL SELECT person_id, 'order' AS kind FROM orders) u GROUP BY u.kind;
SELECT coalesce(height, 170) > 175 AS tall, count(*) AS n FROM people GROUP BY tall;
SELECT greatest(amount, quantity) AS g, count(*) AS n FROM orders WHERE amount BETWEEN 0 AND 3 GROUP BY g;
SELECT count(*) AS n FROM (SELECT DISTINCT person_id FROM orders) t;
SELECT count(*) AS n FROM (SELECT DISTINCT person_id, product FROM orders) t;
SELECT product, count(*) AS n FROM (SELECT DISTINCT person_id, product FROM orders) t GROUP BY product;
SELECT sum(o.amount) AS s FROM orders o WHERE EXISTS (SELECT 1 FROM people p WHERE p.person_id = o.person_id AND p.region = 'n');
SELECT sum(o.amount) AS s FROM orders o WHERE o.person_id NOT IN (SELECT person_id FROM people WHERE age < 30);
-- refused: is in several tables
SELECT count(*) AS n FROM orders a JOIN orders b ON a.person_id = b.person_id WHERE amount > 3;
-- refused: equal
SELECT count(*) AS n FROM people a JOIN people b ON a.age = b.age;
-- refused: LIMIT in a subquery
SELECT sum(amount) AS s FROM (SELECT amount, person_id FROM orders LIMIT 10) t;
-- refused: correlated
SELECT count(*) AS n FROM people p WHERE age > (SELECT avg(amount) FROM orders o WHERE o.person_id = p.person_id);
-- refused: outside an aggregate
SELECT amount FROM orders GROUP BY status HAVING count(*) > 2;
-- refused: RANDOM
SELECT sum(random() * amount) AS s FROM orders;
WITH t AS (SELECT status, sum(amount) AS s FROM orders GROUP BY status) SELECT avg(s) AS m FROM t;
SELECT status, s / (SELECT count(*) FROM orders) AS x FROM (SELECT status, sum(amount) AS s FROM orders GROUP BY status) t;
SELECT r.country, avg(p.age) AS mean FROM regions AS r LEFT JOIN people AS p ON p.region = r.code GROUP BY r.country;
