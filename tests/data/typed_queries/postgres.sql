-- As people type who know Postgres.

SELECT count(*) FROM public.people;
SELECT count(1) FROM people;
SELECT count(*)::int AS n FROM people;
SELECT region, count(*) FROM public.people AS p GROUP BY p.region;
SELECT public.people.region, count(*) FROM public.people GROUP BY public.people.region;
-- unlike: a cast to numeric(10, 2) keeps all digits
SELECT people.sex, avg(people.height)::numeric(10, 2) AS height FROM people GROUP BY people.sex;
SELECT count(*) FROM people FETCH FIRST 1 ROW ONLY;
SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n DESC FETCH FIRST 3 ROWS ONLY;
SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n DESC OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY;
SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 2 OFFSET 1;
SELECT extract(year FROM day) AS year, sum(amount) FROM orders GROUP BY 1 ORDER BY 1;
SELECT extract(dow FROM day) AS dow, count(*) FROM orders GROUP BY dow;
SELECT extract(isodow FROM day) AS dow, count(*) FROM orders GROUP BY dow;
SELECT extract(epoch FROM placed) > 1720000000 AS late, count(*) AS n FROM orders GROUP BY late;
SELECT date_part('month', day) AS month, count(*) FROM orders GROUP BY month;
-- refused: age | AGE(DATE
SELECT date_part('year', age(born)) AS years, count(*) FROM people GROUP BY years;
SELECT to_char(day, 'YYYY-MM') AS month, sum(amount) AS total FROM orders GROUP BY 1 ORDER BY 1;
-- duckdb: SELECT dayname(day) AS weekday, count(*) FROM orders GROUP BY 1
SELECT to_char(day, 'Day') AS weekday, count(*) FROM orders GROUP BY 1;
SELECT to_char(placed, 'HH24') AS hour, count(*) AS n FROM orders GROUP BY 1;
SELECT to_char(day, 'DD.MM.YYYY') AS d, count(*) AS n FROM orders WHERE day < '2024-01-15' GROUP BY d;
-- duckdb: SELECT strftime(day, '%b %Y') AS month, count(*) AS n FROM orders GROUP BY month
SELECT to_char(day, 'Mon YYYY') AS month, count(*) AS n FROM orders GROUP BY month;
SELECT avg(extract(year FROM age(DATE '2025-01-01', born))) AS mean_age FROM people;
SELECT date_trunc('quarter', placed)::date AS quarter, count(*) FROM orders GROUP BY quarter;
SELECT count(*) FROM orders WHERE day >= '2024-01-01'::date AND day < '2024-01-01'::date + interval '1 month';
SELECT count(*) FROM orders WHERE placed > timestamp '2024-12-31 12:00:00';
SELECT count(*) FROM orders WHERE day BETWEEN date '2024-02-01' AND date '2024-02-29';
SELECT sum(amount) FILTER (WHERE gift) AS gifts, sum(amount) FILTER (WHERE NOT gift) AS rest FROM orders;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders;
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY age) AS q1, percentile_cont(0.75) WITHIN GROUP (ORDER BY age) AS q3 FROM people;
SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY age DESC) FROM people;
SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY amount) FROM orders;
SELECT mode() WITHIN GROUP (ORDER BY status) FROM orders;
SELECT count(*) FROM people WHERE name ~ '^[A-M]';
SELECT count(*) FROM people WHERE name ~* '^z';
SELECT count(*) FROM people WHERE name ~ '^An|e$|ob';
SELECT count(*) FROM people WHERE name ~ '^(bob|Max|Ann)$';
SELECT count(*) FROM people WHERE name !~* 'ANN';
SELECT count(*) FROM people WHERE name SIMILAR TO '(Ann|Bob).*';
SELECT count(*) FILTER (WHERE note ~ '^\d+') AS numbered FROM orders;
-- refused: 'a.{15}b' | slow
SELECT count(*) FROM people WHERE name ~ 'a.{15}b';
SELECT count(*) FROM people WHERE name !~ '^[A-M]';
-- not yet: SIMILAR TO | REGEXP_FULL_MATCH(a, '(Ann|Bob).*')
SELECT count(*) FROM people WHERE name SIMILAR TO '(Ann|Bob)%';
SELECT count(*) FROM people WHERE name NOT ILIKE 'a%';
SELECT count(*) FROM people WHERE position('o' IN name) > 0;
SELECT count(*) FROM people WHERE strpos(lower(name), 'ann') = 1;
SELECT substring(name FROM 1 FOR 1) AS initial, count(*) AS n FROM people GROUP BY initial;
-- duckdb: SELECT upper(left(status, 1)) || substring(status, 2) AS status, count(*) AS n FROM orders GROUP BY 1
SELECT initcap(status) AS status, count(*) AS n FROM orders GROUP BY 1;
SELECT btrim(note) AS note, count(*) AS n FROM orders WHERE note IS NOT NULL GROUP BY 1;
SELECT trim(both ' ' from note) AS note, count(*) AS n FROM orders WHERE note IS NOT NULL GROUP BY 1;
SELECT left(name, -1) AS most, count(*) AS n FROM people GROUP BY most;
SELECT right(name, 2) AS ending, count(*) AS n FROM people GROUP BY ending;
SELECT char_length(note) AS l, count(*) AS n FROM orders WHERE note IS NOT NULL GROUP BY l;
SELECT count(*) FROM people WHERE region = ANY (ARRAY['n', 's']);
-- not yet: ANY | IN ('x', 'y')
SELECT count(*) FROM people WHERE region = ANY ('{n,s}');
SELECT coalesce(avg(balance), 0) AS balance FROM people WHERE region = 'w';
SELECT stddev_samp(amount), var_samp(amount) FROM orders;
-- not yet: BOOL_AND | COUNT_IF
SELECT bool_and(smoker) FROM people;
SELECT sum(case when smoker then 1 else 0 end)::float / count(*) AS share FROM people;
SELECT round(avg(height)::numeric, 2) FROM people;
SELECT round(100.0 * sum((status = 'paid')::int) / count(*), 1) AS paid FROM orders;
-- unlike: DuckDB has no WIDTH_BUCKET
SELECT width_bucket(amount, 0, 100, 5) AS bucket, count(*) FROM orders GROUP BY bucket ORDER BY bucket;
SELECT count(*) FROM (people p JOIN orders o ON p.person_id = o.person_id);
SELECT count(*) FROM people p INNER JOIN (orders o JOIN regions r ON o.ship_to = r.code) ON p.person_id = o.person_id;
SELECT r.name, count(DISTINCT p.person_id) AS buyers FROM people p JOIN orders o ON o.person_id = p.person_id JOIN regions r ON r.code = p.region GROUP BY r.name;
SELECT count(DISTINCT CASE WHEN amount > 50 THEN person_id END) AS big FROM orders;
SELECT count(DISTINCT person_id) FILTER (WHERE gift) AS givers FROM orders;
SELECT count(*) FROM orders o, people p WHERE o.person_id = p.person_id AND p.age < 30;
SELECT region, avg(n) AS mean FROM (SELECT p.person_id, p.region, count(o.order_id) AS n FROM people p LEFT JOIN orders o ON o.person_id = p.person_id GROUP BY p.person_id, p.region) AS t GROUP BY region;
WITH recent AS (SELECT * FROM orders WHERE day >= '2025-01-01') SELECT status, count(*) FROM recent GROUP BY status;
WITH a AS (SELECT person_id, amount FROM orders), b AS (SELECT person_id FROM a WHERE amount > 20) SELECT count(*) FROM b;
SELECT grouping(region) AS total, region, count(*) FROM people GROUP BY GROUPING SETS ((region), ());
SELECT age AS years, count(*) FROM people GROUP BY years HAVING count(*) > 0;
SELECT region, avg(age) AS age FROM people GROUP BY region HAVING avg(age) > 20;
SELECT cbrt(height) > 5 AS tall, count(*) FROM people GROUP BY tall;
SELECT sum(amount) AS amount FROM orders HAVING sum(amount) > 10;
SELECT region, sum(age) AS age FROM people GROUP BY region HAVING age > 10;
SELECT count(*) FROM people WHERE (age > 30) IS TRUE;
SELECT count(*) FROM people WHERE (smoker OR age > 30) IS NOT FALSE;
SELECT count(*) FROM people WHERE height NOTNULL;
SELECT count(*) FROM people WHERE height ISNULL;
SELECT -sum(-amount) AS total FROM orders;
SELECT sum(amount ^ 2) AS squares FROM orders;
SELECT sum(power(amount, 2)) AS squares FROM orders;
SELECT mod(quantity, 3) AS rest, count(*) AS n FROM orders GROUP BY rest;
SELECT div(age, 10) AS decade, count(*) AS n FROM people GROUP BY decade;
SELECT trunc(height) AS cm, count(*) FROM people GROUP BY cm;
SELECT count(*) FROM orders WHERE amount::int = 20;
SELECT ceil(amount / 25) AS class, count(*) AS n FROM orders GROUP BY class;
SELECT count(*) FROM orders WHERE make_date(2024, 1, 1) <= day;
SELECT corr(amount, quantity) AS r FROM orders WHERE status = 'paid';
SELECT regr_slope(amount, quantity) FROM orders WHERE gift;
-- not yet: every | COUNT_IF
SELECT every(age > 0) FROM people;
SELECT nullif(status, 'open') AS status, count(*) AS n FROM orders GROUP BY 1;
SELECT (day - DATE '2024-01-01') / 100 AS hundreds, count(*) AS n FROM orders GROUP BY hundreds;
SELECT count(*) FROM orders WHERE placed - day > interval '12 hours';
SELECT count(*) FROM orders WHERE placed - timestamp '2024-05-01 13:00:00' < interval '30 days';
SELECT avg(extract(epoch FROM placed - timestamp '2024-01-01 00:00:00')) AS s FROM orders;
SELECT avg(extract(day FROM placed - timestamp '2024-05-01 13:00:00')) AS s FROM orders;
SELECT extract(hour FROM placed::time) AS h, count(*) AS n FROM orders GROUP BY h;
SELECT date_trunc('hour', placed)::time AS t, count(*) AS n FROM orders GROUP BY t;
-- refused: TIME | STRFTIME(t, '%H:%M')
SELECT placed::time AS t, count(*) AS n FROM orders GROUP BY t;
SELECT sum(amount) FROM orders WHERE note IS NOT NULL AND note <> '';
SELECT repeat('x', 3) AS x, count(*) FROM people;
-- duckdb: SELECT 'X' || substring(name, 2) AS masked, count(*) FROM people GROUP BY masked
SELECT overlay(name placing 'X' from 1) AS masked, count(*) FROM people GROUP BY masked;
-- not yet: MD5 | itself
SELECT md5(name), count(*) FROM people GROUP BY 1;
-- refused: single quotes: 'w'
SELECT count(*) FROM people WHERE region = "w";
-- refused: DISTINCT ON | GROUP BY
SELECT DISTINCT ON (region) region, name FROM people;
-- refused: LATERAL
SELECT count(*) FROM people p, LATERAL (SELECT * FROM orders o WHERE o.person_id = p.person_id LIMIT 1) t;
-- refused: A list of values
SELECT array_agg(age) FROM people;
-- refused: now | Write the date
SELECT count(*) FROM orders WHERE placed > now() - interval '1 day';
-- refused: rows that it lists itself | LEFT JOIN
SELECT count(*) FROM generate_series(1, 10);
-- refused: FULL JOIN
SELECT count(*) FROM people FULL JOIN orders USING (person_id);
-- refused: A lock
SELECT count(*) FROM people FOR UPDATE;
-- refused: Only SELECT
EXPLAIN SELECT count(*) FROM people;
-- refused: names the units
SELECT max(person_id) FROM people;
SELECT count(*) FROM people INTERSECT SELECT count(*) FROM orders;
-- refused: WITH RECURSIVE
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT count(*) FROM t;
-- duckdb: SELECT region, rank() OVER (ORDER BY count(*) DESC) AS place, count(*) FROM people WHERE region IS NOT NULL GROUP BY region
SELECT region, rank() OVER (ORDER BY count(*) DESC) AS place, count(*) FROM people GROUP BY region;
SELECT 'people' AS what, count(*) AS n FROM people UNION ALL SELECT 'orders', count(*) FROM orders;
WITH monthly AS (SELECT date_trunc('month', day) AS m, sum(amount) AS total FROM orders GROUP BY 1) SELECT m, total - lag(total) OVER (ORDER BY m) AS change FROM monthly;
SELECT sum(quantity) AS q FROM (SELECT DISTINCT ON (person_id) person_id, quantity FROM orders ORDER BY person_id, day DESC) t;
WITH latest AS (SELECT DISTINCT ON (person_id, product) * FROM orders ORDER BY person_id, product, placed DESC) SELECT product, count(*) AS n, sum(amount) AS s FROM latest GROUP BY product;
SELECT k.r, count(p.person_id) AS n FROM unnest(ARRAY['n', 's', 'e']) AS k(r) LEFT JOIN people p ON p.region = k.r GROUP BY k.r;
SELECT m, count(o.order_id) AS n FROM generate_series(1, 12) AS t(m) LEFT JOIN orders o ON extract(month FROM o.day) = m GROUP BY m;
-- duckdb: SELECT r.name, COUNT(p.person_id) FROM regions r LEFT JOIN people p ON p.region = r.code GROUP BY r.name
SELECT r.name, count(p.person_id) AS n FROM people p RIGHT OUTER JOIN regions r ON p.region = r.code GROUP BY r.name;
-- not yet: A condition on p | Put it into ON
SELECT r.name, count(*) AS empty FROM regions r LEFT JOIN people p ON p.region = r.code WHERE p.person_id IS NULL GROUP BY r.name;
-- not yet: GROUP BY holds a column of p | JOIN
SELECT r.name, p.sex, count(p.age) AS n FROM regions r LEFT JOIN people p ON p.region = r.code GROUP BY r.name, p.sex;
-- not yet: A condition in ON is about r alone | WHERE
SELECT r.name, count(p.age) AS n FROM regions r LEFT JOIN people p ON p.region = r.code AND r.country = 'A' GROUP BY r.name;
-- duckdb: SELECT STRFTIME(placed, '%Y') AS y, STRFTIME(placed, '%m') AS m, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM orders GROUP BY 1, 2
SELECT TO_CHAR(placed, 'YYYY') AS y, TO_CHAR(placed, 'MM') AS m, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM orders GROUP BY 1, 2;
-- duckdb: SELECT STRFTIME(m, '%Y') AS y, SUM(n) AS n FROM (SELECT DATE_TRUNC('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY m) t GROUP BY y
SELECT TO_CHAR(m, 'YYYY') AS y, SUM(n) AS n FROM (SELECT DATE_TRUNC('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY m) t GROUP BY y;
-- not yet: TO_CHAR | STRFTIME(d, '%Y-%m')
SELECT TO_CHAR(m, 'IYYY') AS y, SUM(n) AS n FROM (SELECT DATE_TRUNC('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY m) t GROUP BY y;
