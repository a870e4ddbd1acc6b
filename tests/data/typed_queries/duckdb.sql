-- As people type who work with DuckDB every day.

SELECT COUNT(*) FROM people;
SELECT count(*) AS n, avg(age) AS mean_age FROM people;
FROM people SELECT COUNT(*);
SELECT region, COUNT(*) FROM people GROUP BY region;
SELECT region, COUNT(*) AS n FROM people GROUP BY ALL ORDER BY n DESC;
SELECT region, sex, COUNT(*) AS n FROM people GROUP BY 1, 2 ORDER BY 1, 2;
SELECT COUNT(*) FILTER (WHERE smoker) AS smokers, COUNT(*) AS everybody FROM people;
SELECT COUNT(*) FILTER (smoker) AS smokers FROM people;
SELECT AVG(height) FROM people WHERE age BETWEEN 18 AND 65;
-- unlike: half of a step is rounded either way
SELECT region, ROUND(AVG(height), 1) AS height FROM people WHERE height IS NOT NULL GROUP BY region;
SELECT SUM(amount) AS turnover FROM orders WHERE status <> 'returned';
SELECT status, SUM(amount) AS total, COUNT(*) AS orders, COUNT(DISTINCT person_id) AS customers FROM orders GROUP BY status;
SELECT product, SUM(quantity) FROM orders GROUP BY product HAVING SUM(quantity) > 5;
SELECT date_trunc('month', day) AS month, SUM(amount) FROM orders GROUP BY month ORDER BY month;
SELECT date_trunc('week', day) AS week, COUNT(*) AS n FROM orders WHERE day >= DATE '2024-01-01' AND day < DATE '2024-03-01' GROUP BY week;
SELECT year(day) AS y, quarter(day) AS q, COUNT(*) AS n FROM orders GROUP BY y, q ORDER BY y, q;
SELECT dayofweek(day) AS dow, COUNT(*) FROM orders GROUP BY dow;
SELECT dayname(day) AS weekday, COUNT(*) AS n FROM orders GROUP BY weekday;
SELECT monthname(day) AS month, AVG(amount) AS mean FROM orders GROUP BY month;
SELECT hour(placed) AS h, COUNT(*) AS n FROM orders GROUP BY h ORDER BY h;
SELECT strftime(day, '%Y-%m') AS month, COUNT(*) AS n FROM orders GROUP BY month;
SELECT strftime(day, '%b %Y') AS month, COUNT(*) AS n FROM orders GROUP BY month;
SELECT strftime('%Y', day) AS y, COUNT(*) AS n FROM orders GROUP BY y;
SELECT last_day(day) AS month_end, SUM(amount) FROM orders GROUP BY month_end;
SELECT COUNT(*) FROM orders WHERE day = make_date(2024, 2, 29);
SELECT COUNT(*) FROM people WHERE month(born) = 2 AND day(born) = 29;
SELECT date_diff('year', born, DATE '2025-01-01') AS years, COUNT(*) FROM people GROUP BY years;
SELECT datediff('day', day, DATE '2025-12-31') // 30 AS months_ago, COUNT(*) AS n FROM orders GROUP BY months_ago;
SELECT AVG(date_diff('day', born, day)) AS mean_days FROM people JOIN orders USING (person_id);
SELECT COUNT(*) FROM orders WHERE day + INTERVAL 30 DAY > DATE '2025-01-01';
SELECT COUNT(*) FROM orders WHERE day - INTERVAL '1' MONTH >= '2024-12-01';
SELECT COUNT(*) FROM orders WHERE date_add(day, INTERVAL 1 MONTH) > DATE '2025-06-01';
SELECT COUNT(*) FROM orders WHERE epoch(placed) > 1735689600;
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS class, COUNT(*) AS n FROM people GROUP BY class;
SELECT if(age >= 65, 'senior', 'other') AS class, COUNT(*) AS n FROM people GROUP BY class;
SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade ORDER BY decade;
SELECT floor(amount / 50) * 50 AS class, COUNT(*) AS n FROM orders GROUP BY class ORDER BY class;
SELECT round(height, -1) AS about, COUNT(*) FROM people GROUP BY about;
SELECT MEDIAN(age) FROM people;
SELECT quantile_cont(amount, 0.9) AS p90 FROM orders;
SELECT quantile_disc(quantity, 0.5) FROM orders;
SELECT MIN(age), MAX(age) FROM people;
SELECT VAR_SAMP(height), STDDEV(height), STDDEV_POP(height) FROM people;
SELECT variance(amount) AS v, var_pop(amount) AS vp FROM orders;
SELECT CORR(age, height) FROM people;
SELECT COVAR_POP(amount, quantity), COVAR_SAMP(amount, quantity) FROM orders;
SELECT regr_slope(height, age) AS slope FROM people;
SELECT regr_slope(amount, quantity) AS slope, regr_intercept(amount, quantity) AS intercept FROM orders;
SELECT regr_r2(amount, quantity) AS r2, regr_count(amount, quantity) AS n FROM orders;
SELECT regr_avgx(amount, quantity) AS x, regr_avgy(amount, quantity) AS y FROM orders;
SELECT regr_sxx(height, age) AS xx, regr_syy(height, age) AS yy, regr_sxy(height, age) AS xy FROM people;
SELECT favg(age) AS a, fsum(age) AS b, kahan_sum(age) AS c, count_star() AS n FROM people;
SELECT sem(age) FROM people;
-- refused: EXP(AVG(LN
SELECT geomean(quantity) FROM orders;
SELECT SUM(amount) / COUNT(*) AS mean FROM orders;
SELECT 100.0 * COUNT(*) FILTER (WHERE status = 'returned') / COUNT(*) AS percent_returned FROM orders;
SELECT AVG(CASE WHEN smoker THEN 1 ELSE 0 END) AS share FROM people;
SELECT AVG(CAST(smoker AS INTEGER)) AS share FROM people;
SELECT AVG(smoker::INT) AS share FROM people;
SELECT SUM(smoker::INT) AS smokers FROM people;
SELECT SUM(smoker) AS smokers FROM people;
SELECT COUNT(*) FROM people WHERE smoker = 1;
SELECT COUNT(*) FROM people WHERE smoker = '1';
SELECT COUNT(*) FROM people WHERE smoker > 0;
SELECT COALESCE(smoker, 0) AS s, COUNT(*) AS n FROM people GROUP BY s;
SELECT SUM(COALESCE(smoker, 0)) AS s FROM people;
SELECT CASE WHEN age > 40 THEN smoker ELSE 0 END AS s, COUNT(*) AS n FROM people GROUP BY s;
-- refused: boolean | CAST(x AS INTEGER)
SELECT SUM(age * smoker) AS s FROM people;
-- refused: boolean | AVG(CAST(x AS INTEGER))
SELECT AVG(smoker) AS s FROM people;
SELECT SUM(CAST(amount AS DECIMAL(10, 1))) AS s FROM orders;
SELECT SUM(CAST(amount AS DECIMAL(10, 0))) AS s FROM orders;
SELECT CAST(AVG(amount) AS DECIMAL(10, 2)) AS s FROM orders;
SELECT AVG(height)::NUMERIC(5, 1) AS s FROM people;
SELECT CAST(amount AS DECIMAL(10, 1)) AS a, COUNT(*) AS n FROM orders WHERE amount BETWEEN 0 AND 5 GROUP BY a;
SELECT COUNT(*) FROM people WHERE smoker = true AND age > 30;
SELECT COUNT(*) FROM people WHERE NOT smoker;
SELECT COUNT(*) FROM people WHERE smoker IS NULL;
SELECT COUNT(*) FROM people WHERE smoker IS DISTINCT FROM true;
SELECT COALESCE(region, '?') AS region, COUNT(*) AS n FROM people GROUP BY 1;
SELECT ifnull(region, '?') AS region, COUNT(*) AS n FROM people GROUP BY 1;
SELECT COUNT(*) FROM orders WHERE note IS NULL;
SELECT COUNT(*) FROM orders WHERE note LIKE '%gift%';
SELECT COUNT(*) FROM orders WHERE note ILIKE '%GIFT%';
SELECT COUNT(*) FROM orders WHERE contains(note, 'ß');
SELECT COUNT(*) FROM orders WHERE note LIKE '50\%%' ESCAPE '\';
SELECT COUNT(*) FROM orders WHERE note LIKE '%!_%' ESCAPE '!';
SELECT COUNT(*) FROM orders WHERE starts_with(note, 'gift');
SELECT COUNT(*) FROM orders WHERE note ^@ 'gift';
SELECT COUNT(*) FROM orders WHERE regexp_matches(note, 'gift|card');
SELECT COUNT(*) FROM orders WHERE regexp_full_match(note, '[a-z ]+');
SELECT COUNT(*) FROM orders WHERE note ~ '[0-9]+%.*';
SELECT COUNT(*) FROM orders WHERE note SIMILAR TO 'gift.*';
SELECT COUNT(*) FROM orders WHERE regexp_matches(note, 'GIFT', 'i');
SELECT COUNT(*) FROM people WHERE regexp_matches(name, '^.{3}$');
SELECT COUNT(*) FROM people WHERE regexp_matches(name, '\s+$');
SELECT COUNT(*) FROM people WHERE regexp_matches(name, '[[:upper:]][[:lower:]]+ [[:upper:]]');
SELECT SUM(CASE WHEN regexp_matches(note, '^[0-9]+') THEN amount ELSE 0 END) AS s FROM orders;
SELECT regexp_matches(status, '^(paid|sent)$') AS done, COUNT(*) AS n FROM orders GROUP BY done;
SELECT COUNT(*) FROM people WHERE instr(name, ' ') > 0;
SELECT COUNT(*) FROM people WHERE strpos(name, 'é') > 0;
SELECT split_part(name, ' ', 1) AS first_name, COUNT(*) AS n FROM people GROUP BY first_name;
SELECT upper(left(name, 1)) AS initial, COUNT(*) AS n FROM people GROUP BY initial;
SELECT length(name) AS letters, COUNT(*) AS n FROM people GROUP BY letters;
SELECT concat(region, '/', sex) AS cell, COUNT(*) AS n FROM people GROUP BY cell;
SELECT region || '-' || sex AS cell, COUNT(*) AS n FROM people WHERE region IS NOT NULL GROUP BY cell;
SELECT concat('q', quarter(day)) AS q, COUNT(*) AS n FROM orders GROUP BY q;
SELECT concat_ws('-', year(day), quarter(day)) AS q, COUNT(*) AS n FROM orders GROUP BY q;
SELECT year(day) || '-Q' || quarter(day) AS q, COUNT(*) AS n FROM orders GROUP BY q;
SELECT trim(note, '*') AS note, COUNT(*) AS n FROM orders WHERE note IS NOT NULL GROUP BY 1;
SELECT COUNT(*) FROM people p JOIN orders o ON p.person_id = o.person_id WHERE p.region = 'n';
SELECT p.region, SUM(o.amount) AS total FROM people p JOIN orders o USING (person_id) GROUP BY p.region;
SELECT r.name, COUNT(*) AS n FROM people p JOIN regions r ON p.region = r.code GROUP BY r.name;
SELECT r.country, AVG(p.age) AS age FROM people p JOIN regions r ON p.region = r.code GROUP BY r.country;
SELECT region, SUM(amount) AS total FROM people NATURAL JOIN orders GROUP BY region;
SELECT COUNT(*) FROM people p LEFT JOIN orders o USING (person_id) WHERE o.order_id IS NULL;
SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM orders WHERE amount > 50);
SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.person_id = p.person_id);
SELECT AVG(total) AS mean_per_customer FROM (SELECT person_id, SUM(amount) AS total FROM orders GROUP BY person_id);
WITH per_person AS (SELECT person_id, COUNT(*) AS n FROM orders GROUP BY person_id) SELECT n, COUNT(*) AS people FROM per_person GROUP BY n;
SELECT COUNT(*) FROM (SELECT * FROM orders WHERE gift);
SELECT COUNT(person_id) FROM people;
SELECT COUNT(DISTINCT product) FROM orders;
SELECT approx_count_distinct(product) FROM orders;
SELECT COUNT(DISTINCT day) AS days FROM orders WHERE status = 'paid';
SELECT sign(amount) AS s, COUNT(*) AS n FROM orders GROUP BY s;
SELECT SUM(abs(amount)) FROM orders;
SELECT SUM(greatest(amount, 0)) AS income, SUM(least(amount, 0)) AS refunds FROM orders;
SELECT AVG(ln(amount)) FROM orders WHERE amount > 0;
SELECT AVG(ln(amount)) FILTER (WHERE amount > 0) FROM orders;
SELECT AVG(CASE WHEN amount > 0 THEN ln(amount) END) FROM orders;
SELECT SUM(1 / quantity) AS s FROM orders WHERE quantity >= 1;
SELECT SUM(amount / quantity) AS s FROM orders WHERE quantity IN (1, 2, 3);
SELECT AVG(ln(o.amount)) FROM people p JOIN orders o USING (person_id) WHERE o.amount > 0 AND p.age > 20;
SELECT AVG(sqrt(amount)) FROM orders WHERE amount >= 0;
SELECT AVG(pow(height / 100, 2)) AS squared FROM people;
SELECT SUM(amount * quantity) AS value FROM orders;
SELECT AVG(amount / nullif(quantity, 0)) AS each FROM orders;
SELECT AVG(sin(age)) FROM people;
SELECT AVG(cos(radians(age))) AS c, AVG(degrees(atan(balance))) AS a FROM people;
SELECT SUM(height * pi() / 2) FROM people;
SELECT AVG(2 * atan2(balance, height)) FROM people;
SELECT COUNT(*) FROM orders WHERE quantity % 2 = 0;
SELECT quantity & 1 AS odd, COUNT(*) AS n FROM orders GROUP BY odd;
SELECT region, COUNT(*) FROM people GROUP BY ROLLUP (region);
SELECT region, sex, COUNT(*) AS n FROM people GROUP BY CUBE (region, sex);
SELECT COUNT_IF(age > 40) AS n FROM people;
SELECT SUM(IF(gift, amount, 0)) AS gifts FROM orders;
SELECT mean(age) AS m FROM people;
SELECT COUNT(*) FROM orders WHERE status IN ('paid', 'sent') AND NOT gift;
SELECT COUNT(*) FROM orders WHERE (status, gift) IN (('paid', true), ('sent', false));
SELECT COUNT(*) FROM orders WHERE placed >= '2024-06-01' AND placed < '2024-07-01';
SELECT COUNT(*) FROM orders WHERE placed::DATE = '2024-02-29';
SELECT COUNT(*) FROM orders WHERE placed::TIME >= '12:00';
SELECT CAST(placed AS DATE) AS d, COUNT(*) AS n FROM orders WHERE placed < '2024-02-01' GROUP BY d;
SELECT age > 40 AS older, COUNT(*) AS n FROM people GROUP BY older;
SELECT region, max(age) - min(age) AS span FROM people GROUP BY region;
SELECT quantile_cont(age, [0.25, 0.5, 0.75]) FROM people;
SELECT sex, COUNT(*), quantile_disc(height, [0.1, 0.9]) AS q FROM people GROUP BY sex;
-- refused: A list | by itself
SELECT quantile_cont(age, [0.25, 0.5]) AS q FROM people ORDER BY q;
-- duckdb: SELECT DISTINCT region FROM people WHERE region IS NOT NULL
SELECT DISTINCT region FROM people;
-- duckdb: SELECT region FROM people WHERE region IS NOT NULL GROUP BY region
SELECT region FROM people GROUP BY region;
SELECT DISTINCT sex FROM people ORDER BY sex DESC;
-- not yet: is not public | SELECT name, COUNT(*) FROM people GROUP BY name
SELECT DISTINCT name FROM people;
SELECT order_id, COUNT(*) AS n FROM orders WHERE order_id IN (101, 103, 107) GROUP BY order_id;
SELECT order_id, SUM(quantity) AS q FROM orders WHERE order_id BETWEEN 110 AND 130 GROUP BY order_id ORDER BY order_id;
SELECT name, COUNT(*) AS n FROM people WHERE name IN ('Ann Lee', 'bob', '李雷') GROUP BY name;
SELECT COUNT(*) FROM people WHERE born < '1980-01-01'::DATE;
SELECT isodow(day) AS weekday, SUM(quantity) AS items FROM orders GROUP BY weekday;
SELECT week(day) AS week, COUNT(*) AS n FROM orders WHERE year(day) = 2024 GROUP BY week;
SELECT COUNT(*) FROM orders WHERE day IN (DATE '2024-02-29', DATE '2024-03-01');
SELECT ROUND(SUM(amount), 2) AS total FROM orders;
SELECT COUNT(*) AS "how many", AVG(age) AS "mean age" FROM people;
SELECT MODE(status) FROM orders;
SELECT MODE(gift) AS gift, MODE(sex) AS sex FROM people JOIN orders USING (person_id);
SELECT ship_to, MODE(status) AS usual, COUNT(*) AS n FROM orders GROUP BY ship_to;
-- refused: MODE | GROUP BY 1 ORDER BY COUNT(*)
SELECT MODE(note) FROM orders;
-- refused: MODE | by itself
SELECT status FROM orders GROUP BY status HAVING MODE(product) = 'tea';
SELECT skewness(age) FROM people;
SELECT kurtosis(age) AS k, kurtosis_pop(age) AS p, skewness(balance) AS s FROM people;
SELECT sex, skewness(height) FROM people GROUP BY sex;
SELECT kurtosis(quantity) FILTER (WHERE gift) FROM orders;
SELECT SUM(DISTINCT quantity) FROM orders;
SELECT status, SUM(DISTINCT amount) AS s, COUNT(DISTINCT amount) AS n FROM orders GROUP BY status;
SELECT product, AVG(DISTINCT quantity) AS mean FROM orders GROUP BY product;
SELECT AVG(DISTINCT amount) FILTER (WHERE gift) FROM orders;
-- refused: DISTINCT | SUM(DISTINCT x)
SELECT VAR_POP(DISTINCT quantity) FROM orders;
SELECT COUNT(*) FROM orders WHERE translate(note, 'ä', 'a') = 'gift';
-- not yet: REVERSE | ENDS_WITH
SELECT COUNT(*) FROM people WHERE reverse(name) LIKE 'a%';
SELECT lpad(CAST(month(day) AS VARCHAR), 2, '0') AS m, COUNT(*) AS n FROM orders GROUP BY m;
-- refused: SELECT *
SELECT * FROM people;
-- refused: SELECT *
FROM people LIMIT 5;
-- refused: outside an aggregate
SELECT name, COUNT(*) FROM people;
-- refused: outside an aggregate
SELECT age FROM people WHERE name = 'Zoë';
-- refused: names the units
SELECT person_id, SUM(amount) FROM orders GROUP BY person_id;
-- refused: A list of values
SELECT list(name) FROM people;
-- refused: A list of values
SELECT string_agg(name, ', ') FROM people;
-- refused: FIRST
SELECT first(name) FROM people;
-- refused: ARG_MAX
SELECT arg_max(name, age) FROM people;
-- refused: Sampling
SELECT COUNT(*) FROM people USING SAMPLE 10%;
-- refused: RANDOM
SELECT COUNT(*) FROM people WHERE random() < 0.5;
-- refused: current date
SELECT COUNT(*) FROM orders WHERE day > current_date - 30;
-- refused: READ_CSV in FROM | dalenius tables
SELECT COUNT(*) FROM read_csv('people.csv');
-- refused: scalar subquery
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people);
-- refused: Only SELECT
DELETE FROM people;
-- refused: more than one statement
SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM orders;
-- refused: 'aeg'
SELECT AVG(aeg) FROM people;
-- refused: PIVOT
SELECT COUNT(*) FROM (PIVOT orders ON status USING SUM(amount));
-- duckdb: SELECT region, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people WHERE region IS NOT NULL GROUP BY region
SELECT region, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY region;
SELECT region, n FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) WHERE n > 2;
SELECT date_trunc('month', day) AS m, SUM(SUM(amount)) OVER (ORDER BY date_trunc('month', day)) AS running FROM orders GROUP BY m;
SELECT product, SUM(amount) AS total FROM orders GROUP BY product QUALIFY row_number() OVER (ORDER BY total DESC) <= 3;
SELECT COUNT(*) AS n, SUM(amount) AS total FROM (SELECT *, row_number() OVER (PARTITION BY person_id ORDER BY day) AS k FROM orders) WHERE k = 1;
SELECT product, COUNT(*) AS n FROM (SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY person_id ORDER BY placed DESC) = 1) GROUP BY product;
SELECT k, AVG(amount) AS a FROM (SELECT amount, row_number() OVER (PARTITION BY person_id ORDER BY day, order_id) AS k FROM orders) WHERE k <= 3 GROUP BY k ORDER BY k;
SELECT COUNT(*) AS n FROM people WHERE person_id IN (SELECT person_id FROM (SELECT person_id, status, row_number() OVER (PARTITION BY person_id ORDER BY day) AS k FROM orders) WHERE k = 1 AND status = 'paid');
-- refused: ROW_NUMBER over rows of several people | PARTITION BY person_id
SELECT COUNT(*) FROM (SELECT *, row_number() OVER (PARTITION BY product ORDER BY day) AS k FROM orders) WHERE k = 1;
SELECT AVG(DATE_SUB('year', born, DATE '2025-01-01')) AS s FROM people;
SELECT datesub('month', born, joined) // 12 AS s, COUNT(*) AS n FROM people GROUP BY s;
SELECT TRANSLATE(status, 'aeiou', '*****') AS s, COUNT(*) AS n FROM orders GROUP BY s;
-- not yet: TRANSLATE | REPLACE
SELECT TRANSLATE(status, 'ab', 'ba') AS s, COUNT(*) AS n FROM orders GROUP BY s;
SELECT REPEAT(sex, 2) AS s, COUNT(*) AS n FROM people GROUP BY s;
SELECT EXTRACT(decade FROM born) AS d, COUNT(*) AS n FROM people GROUP BY d;
SELECT EXTRACT(century FROM born) AS d, COUNT(*) AS n FROM people GROUP BY d;
SELECT MAKE_DATE(YEAR(day), MONTH(day), 1) AS m, COUNT(*) AS n FROM orders GROUP BY m;
SELECT GREATEST(day, DATE '2024-06-01') AS d, COUNT(*) AS n FROM orders WHERE day < '2024-06-10' GROUP BY d;
SELECT SUM(LOG(3, quantity + 1)) AS l FROM orders;
SELECT (quantity - 5) & 3 AS r, COUNT(*) AS n FROM orders GROUP BY r;
SELECT (quantity - 3) >> 1 AS d, COUNT(*) AS n FROM orders GROUP BY d;
SELECT quantity << 1 AS d, COUNT(*) AS n FROM orders GROUP BY d;
SELECT fdiv(age, 10) AS d, COUNT(*) AS n FROM people GROUP BY d;
SELECT substr(status, -2) AS d, COUNT(*) AS n FROM orders GROUP BY d;
SELECT k.r, COUNT(p.person_id) AS n FROM (VALUES ('n'), ('s'), ('nowhere')) AS k(r) LEFT JOIN people p ON p.region = k.r GROUP BY k.r;
SELECT k.r, k.title, COUNT(*) AS n, AVG(age) AS mean FROM people p JOIN (VALUES ('n', 'up'), ('s', 'down')) AS k(r, title) ON p.region = k.r GROUP BY k.r, k.title;
SELECT k.r, COUNT(*) AS n FROM people p JOIN (VALUES ('n'), ('n')) AS k(r) ON p.region = k.r GROUP BY k.r;
SELECT k.d, COUNT(o.order_id) AS n FROM (VALUES (DATE '2024-02-29'), (DATE '2023-01-01')) AS k(d) LEFT JOIN orders o ON o.day = k.d GROUP BY k.d;
SELECT k.r, COUNT(*) AS n FROM people p JOIN (SELECT UNNEST(['n', 's']) AS r) k ON k.r = p.region GROUP BY k.r;
SELECT m, COUNT(o.order_id) AS n FROM range(0, 9) AS m LEFT JOIN orders o ON o.quantity = m GROUP BY m;
SELECT COUNT(*) FROM people WHERE region IN (VALUES ('n'), ('s'));
WITH k(r) AS (VALUES ('n'), ('s')) SELECT r, COUNT(p.person_id) AS n FROM k LEFT JOIN people p ON p.region = r GROUP BY r;
SELECT r.name, COUNT(p.person_id) AS n FROM regions r LEFT JOIN people p ON p.region = r.code AND p.age > 30 AND p.region <> 'n' GROUP BY r.name;
SELECT r.name, COUNT_IF(p.age > 30) + 0 AS n, COUNT(DISTINCT p.person_id) AS people FROM regions r LEFT JOIN people p ON p.region = r.code WHERE r.country = 'A' GROUP BY r.name;
-- not yet: Nothing ties the list 'b' | CASE WHEN
SELECT b.class, COUNT(*) FROM people p JOIN (VALUES (0, 17, 'child'), (18, 110, 'adult')) AS b(low, high, class) ON p.age BETWEEN b.low AND b.high GROUP BY b.class;
-- refused: A list holds constants alone | VALUES
SELECT COUNT(*) FROM people p CROSS JOIN (VALUES (p.region)) AS k(r);
-- not yet: NULL cannot stand in a list
SELECT k.r, COUNT(*) FROM people p JOIN (VALUES ('n'), (NULL)) AS k(r) ON p.region = k.r GROUP BY k.r;
-- refused: says who somebody is
SELECT COUNT(*) FROM people p JOIN (VALUES (1), (2)) AS k(person_id) ON p.person_id = k.person_id;
-- not yet: GENERATE_SERIES | 2,000
SELECT m, COUNT(*) FROM generate_series(1, 5000) AS t(m) JOIN people p ON p.age = m GROUP BY m;
SELECT region AS r, COUNT(*) AS n FROM people WHERE r = 'n' GROUP BY r;
SELECT sex AS region, COUNT(*) AS n FROM people WHERE region = 'n' GROUP BY sex;
SELECT CASE WHEN age > 30 THEN 'old' ELSE 'young' END AS class, COUNT(*) AS n FROM people WHERE class = 'old' GROUP BY class;
SELECT age + 1 AS a, a * 2 AS b, COUNT(*) AS n FROM people WHERE b > 100 GROUP BY ALL;
SELECT SUM(age) AS s, COUNT(age) AS n, s / n AS mean FROM people;
SELECT COUNT(*) AS n FROM (SELECT age // 10 AS decade FROM people WHERE decade > 3);
-- refused: is an aggregate | HAVING
SELECT region, COUNT(*) AS n FROM people WHERE n > 3 GROUP BY region;
SELECT * FROM (SELECT status, product, amount FROM orders) PIVOT (SUM(amount) FOR product IN ('tea', 'pen'));
PIVOT orders ON product IN ('tea', 'pen') USING SUM(amount) GROUP BY status;
PIVOT orders ON quantity IN (1, 2) USING COUNT(*) AS n, AVG(amount) AS mean GROUP BY status;
SELECT p.status, p.tea + p.pen AS both FROM (SELECT status, product, amount FROM orders) PIVOT (SUM(amount) FOR product IN ('tea', 'pen')) AS p WHERE p.tea > 10;
-- refused: PIVOT | List the values
PIVOT orders ON product USING SUM(amount) GROUP BY status;
SELECT COUNT(*) AS n, SUM(quantity) AS q, q / n AS mean FROM orders;
SELECT status, SUM(quantity) AS q, q * 2 AS twice, twice + 1 AS more FROM orders GROUP BY status ORDER BY status;
SELECT status, COUNT(*) AS n, COUNT(*) FILTER (WHERE quantity > 2) AS many, 100 * many / n AS percent FROM orders GROUP BY status HAVING percent > 1 ORDER BY status;
SELECT quantity * 2 AS d, COUNT_IF(d > 4) AS n FROM orders GROUP BY d;
SELECT 1 AS a, COUNT(*) AS a, a + 1 AS b FROM orders;
SELECT COUNT(*) AS quantity, SUM(quantity) AS q FROM orders;
SELECT AVG(mean) AS m FROM (SELECT person_id, SUM(quantity) AS q, COUNT(*) AS n, q / n AS mean FROM orders GROUP BY person_id);
SELECT AVG(e) AS m FROM (SELECT quantity AS d, d + 1 AS e FROM orders);
-- refused: An aggregate inside an aggregate
SELECT COUNT(*) AS n, SUM(n) FROM orders;
-- refused: There is no column 'n'
SELECT n + 1 AS m, COUNT(*) AS n FROM orders;
-- refused: There is no column 'n'
SELECT COUNT(*) AS n FROM orders GROUP BY quantity + n;
SELECT STRFTIME(placed, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m ORDER BY m;
SELECT YEAR(placed) || '-Q' || QUARTER(placed) AS q, COUNT(*) AS n FROM orders GROUP BY q ORDER BY q;
SELECT STRFTIME(placed, '%H h') AS h, COUNT(*) AS n FROM orders GROUP BY h ORDER BY h;
