-- As people type who used SmartNoise: PUMS-like questions with a schema before the table.

SELECT COUNT(*) FROM PUMS.people;
SELECT COUNT(*) AS c FROM shop.people WHERE age > 40;
SELECT sex, COUNT(*) AS n, AVG(height) AS height FROM shop.people GROUP BY sex;
SELECT sex, age, COUNT(*) AS n FROM shop.people GROUP BY sex, age ORDER BY n DESC LIMIT 5;
SELECT SUM(balance) AS balance FROM shop.people;
SELECT region, SUM(balance) AS balance FROM shop.people GROUP BY region;
SELECT COUNT(DISTINCT person_id) AS n FROM shop.people;
SELECT COUNT(person_id) AS n FROM shop.orders;
-- duckdb: SELECT variance(height) FROM people
SELECT VAR(height) AS v FROM shop.people;
SELECT VARIANCE(height) AS v, STDDEV(height) AS s FROM shop.people;
-- duckdb: SELECT stddev(height) FROM people
SELECT STD(height) AS s FROM shop.people;
SELECT STDDEV_POP(age) AS s, VAR_POP(age) AS v FROM people;
SELECT AVG(height) + 3 AS h FROM people;
SELECT 2 * COUNT(*) + 1 AS n FROM people;
SELECT POWER(AVG(age), 2) AS squared FROM people;
SELECT SQRT(SUM(quantity)) AS root FROM orders;
SELECT AVG(age) AS a, SUM(age) / COUNT(age) AS b FROM people;
SELECT CASE WHEN age >= 18 THEN 'adult' ELSE 'minor' END AS grp, COUNT(*) AS n FROM people GROUP BY grp;
-- duckdb: SELECT IF(smoker, 'yes', 'no') AS smoker, COUNT(*) AS n FROM people WHERE smoker IS NOT NULL GROUP BY 1
SELECT IIF(smoker, 'yes', 'no') AS smoker, COUNT(*) AS n FROM people WHERE smoker IS NOT NULL GROUP BY 1;
-- duckdb: SELECT 'b' AS c, COUNT(*) AS n FROM people
SELECT CHOOSE(2, 'a', 'b') AS c, COUNT(*) AS n FROM people;
SELECT sex, COUNT(*) AS n FROM shop.people GROUP BY sex HAVING n > 2;
SELECT region, COUNT(*) AS n FROM people WHERE smoker = 1 GROUP BY region;
SELECT region, COUNT(*) AS n FROM people WHERE smoker GROUP BY region ORDER BY region ASC;
SELECT region AS r, AVG(balance) AS b FROM people GROUP BY r ORDER BY b DESC;
SELECT MIN(age) AS youngest, MAX(age) AS oldest FROM shop.people;
SELECT UPPER(region) AS r, COUNT(*) AS n FROM people GROUP BY UPPER(region);
SELECT YEAR(born) AS y, COUNT(*) AS n FROM people GROUP BY YEAR(born) ORDER BY n DESC LIMIT 3;
SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM people GROUP BY FLOOR(age / 10);
SELECT age / 10 AS tenth, COUNT(*) AS n FROM people GROUP BY age / 10;
SELECT CEILING(balance / 100) AS c, COUNT(*) AS n FROM people GROUP BY c;
-- unlike: a sum of no values is 0
SELECT sex, region, COUNT(*) AS n, SUM(age) AS years FROM shop.people GROUP BY sex, region;
SELECT COUNT(*) AS n FROM (SELECT age FROM shop.people WHERE age > 20) AS t;
SELECT t.sex, COUNT(*) AS n FROM (SELECT sex, age FROM people WHERE age > 20) AS t GROUP BY t.sex;
SELECT COUNT(*) AS n FROM shop.people AS p INNER JOIN shop.orders AS o ON p.person_id = o.person_id;
SELECT p.sex, SUM(o.amount) AS total FROM shop.people p JOIN shop.orders o ON p.person_id = o.person_id GROUP BY p.sex;
SELECT sex, AVG(age) AS age FROM people GROUP BY sex ORDER BY age;
SELECT region, AVG(age) AS age FROM people GROUP BY region HAVING age > 30;
SELECT COUNT(height) AS known, COUNT(*) - COUNT(height) AS unknown FROM people;
SELECT SIGN(balance) AS s, COUNT(*) AS n FROM people GROUP BY s;
SELECT PI() * AVG(age) AS x FROM people;
SELECT AVG(SIN(height)) AS s, AVG(TAN(height / 300)) AS t FROM people;
-- duckdb: SELECT TRUNC(balance) AS b, COUNT(*) AS n FROM people WHERE balance BETWEEN 0 AND 20 GROUP BY b
SELECT TRUNCATE(balance) AS b, COUNT(*) AS n FROM people WHERE balance BETWEEN 0 AND 20 GROUP BY b;
SELECT COUNT(*) AS n FROM people WHERE region IN ('n', 'e') AND sex NOT IN ('x');
SELECT LEAST(COUNT(*), 10) AS few, GREATEST(AVG(age), 18) AS old FROM people;
SELECT COUNT(*) AS n FROM people WHERE age > 20 AND (sex = 'f' OR smoker);
SELECT COALESCE(smoker, FALSE) AS smoker, COUNT(*) AS n FROM people GROUP BY 1;
SELECT sex, COUNT(*) AS n FROM people WHERE 1 = 1 GROUP BY sex;
SELECT COUNT(*) AS n FROM people WHERE age != 30 AND age <> 31;
SELECT ABS(SUM(balance)) AS b FROM people;
SELECT EXP(LN(COUNT(*))) AS n FROM people;
SELECT CAST(AVG(age) AS INTEGER) AS age FROM people;
SELECT status, AVG(quantity) AS q FROM shop.orders WHERE quantity > 0 GROUP BY status;
SELECT COUNT(DISTINCT status) AS s FROM orders;
SELECT COUNT(DISTINCT sex) AS s, COUNT(DISTINCT region) AS r FROM people;
-- refused: SELECT *
SELECT * FROM PUMS.people;
-- refused: outside an aggregate
SELECT age, COUNT(*) AS n FROM shop.people GROUP BY sex;
-- refused: RANDOM
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY RANDOM();
-- refused: An aggregate inside an aggregate
SELECT SUM(COUNT(*)) FROM people;
-- refused: names the units
SELECT person_id, AVG(age) FROM people GROUP BY person_id;
-- refused: no table
SELECT COUNT(*);
-- refused: An aggregate cannot stand in WHERE
SELECT COUNT(*) FROM people WHERE COUNT(*) > 3;
SELECT COUNT(*) AS n, AVG(n) AS mean FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t;
SELECT EXP(AVG(LN(amount))) AS geometric FROM orders WHERE amount > 0;
SELECT AVG(height / age) AS r FROM people WHERE age BETWEEN 18 AND 65;
SELECT STDDEV(LN(amount)) AS s FROM orders WHERE amount > 0;
SELECT AVG(POWER(amount, 0.5)) AS r FROM orders WHERE amount > 0;
