-- As people type who know SQL Server.

SELECT COUNT(*) FROM [people];
SELECT COUNT(*) FROM dbo.people;
-- duckdb: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM [shop].[dbo].[people];
SELECT COUNT(*) AS [how many] FROM [dbo].[people] AS [p] WHERE [p].[age] > 30;
SELECT [region], AVG([age]) AS [mean age] FROM [people] GROUP BY [region];
SELECT TOP 3 region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC;
SELECT TOP (2) status, SUM(amount) AS total FROM orders GROUP BY status ORDER BY total DESC;
SELECT COUNT_BIG(*) AS n FROM people;
SELECT COUNT(DISTINCT person_id) FROM dbo.orders;
SELECT SUM(DISTINCT quantity) AS s, AVG(DISTINCT quantity * 1.0) AS m FROM dbo.orders;
SELECT AVG(CAST(age AS FLOAT)) AS mean FROM people;
SELECT AVG(age * 1.0) AS mean FROM people;
-- duckdb: SELECT stddev(height), variance(height) FROM people
SELECT STDEV(height) AS s, VAR(height) AS v FROM people;
-- duckdb: SELECT stddev_pop(height), var_pop(height) FROM people
SELECT STDEVP(height) AS s, VARP(height) AS v FROM people;
SELECT ISNULL(region, '-') AS region, COUNT(*) AS n FROM people GROUP BY ISNULL(region, '-');
SELECT SUM(ISNULL(amount, 0)) AS total FROM orders;
SELECT IIF(age >= 65, 'old', 'young') AS class, COUNT(*) AS n FROM people GROUP BY IIF(age >= 65, 'old', 'young');
SELECT SUM(IIF(gift = 1, 1, 0)) AS gifts FROM orders;
SELECT COUNT(*) FROM people WHERE smoker = 0;
SELECT COUNT(*) FROM people WHERE smoker <> 1;
SELECT YEAR(day) AS [year], MONTH(day) AS [month], SUM(amount) AS total FROM orders GROUP BY YEAR(day), MONTH(day) ORDER BY 1, 2;
SELECT DATEPART(year, day) AS y, COUNT(*) AS n FROM orders GROUP BY DATEPART(year, day);
SELECT DATEPART(quarter, day) AS q, COUNT(*) AS n FROM orders GROUP BY DATEPART(quarter, day);
SELECT DATEPART(hh, placed) AS h, COUNT(*) AS n FROM orders GROUP BY DATEPART(hh, placed);
SELECT DATENAME(month, day) AS m, COUNT(*) AS n FROM orders GROUP BY DATENAME(month, day);
SELECT DATENAME(weekday, day) AS w, COUNT(*) AS n FROM orders GROUP BY DATENAME(weekday, day);
SELECT COUNT(*) FROM orders WHERE DATEADD(day, 30, day) > '2025-01-01';
SELECT COUNT(*) FROM orders WHERE DATEADD(month, -1, day) >= '2024-01-31';
SELECT COUNT(*) FROM orders WHERE day >= DATEADD(year, -1, '2025-12-31');
SELECT AVG(DATEDIFF(year, born, '2025-01-01')) AS age FROM people;
SELECT DATEDIFF(month, '2024-01-01', day) AS m, COUNT(*) AS n FROM orders GROUP BY DATEDIFF(month, '2024-01-01', day);
SELECT AVG(DATEDIFF(day, day, '2025-12-31') * 1.0) AS days FROM orders;
SELECT EOMONTH(day) AS m, COUNT(*) AS n FROM orders GROUP BY EOMONTH(day);
SELECT COUNT(*) FROM orders WHERE day = DATEFROMPARTS(2024, 2, 29);
SELECT CONVERT(date, placed) AS d, COUNT(*) AS n FROM orders WHERE placed < '2024-02-01' GROUP BY CONVERT(date, placed);
-- duckdb: SELECT STRFTIME(day, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(varchar(7), day, 126) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(varchar(7), day, 126);
-- duckdb: SELECT STRFTIME(day, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(varchar(7), day, 120) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(varchar(7), day, 120);
-- duckdb: SELECT STRFTIME(placed, '%Y-%m-%d') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(varchar(10), placed, 23) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(varchar(10), placed, 23);
-- duckdb: SELECT STRFTIME(day, '%Y%m%d') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(char(8), day, 112) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(char(8), day, 112);
-- duckdb: SELECT STRFTIME(day, '%Y%m') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(nvarchar(6), day, 112) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(nvarchar(6), day, 112);
-- duckdb: SELECT STRFTIME(day, '%d/%m/%Y') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(varchar, day, 103) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(varchar, day, 103);
-- duckdb: SELECT STRFTIME(placed, '%H:%M') AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(varchar(5), placed, 108) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(varchar(5), placed, 108);
-- duckdb: SELECT CAST(quantity AS VARCHAR) AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT CONVERT(varchar(10), quantity) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(varchar(10), quantity);
-- refused: CONVERT | FORMAT(d, 'yyyy-MM-dd')
SELECT CONVERT(varchar(30), placed, 130) AS m, COUNT(*) AS n FROM orders GROUP BY CONVERT(varchar(30), placed, 130);
SELECT FORMAT(day, 'yyyy-MM') AS m, COUNT(*) AS n FROM orders GROUP BY FORMAT(day, 'yyyy-MM');
SELECT COUNT(*) FROM people WHERE LEN(name) > 4;
SELECT COUNT(*) FROM people WHERE CHARINDEX(' ', name) > 0;
SELECT LEFT(name, 1) AS initial, COUNT(*) AS n FROM people GROUP BY LEFT(name, 1);
SELECT SUBSTRING(name, 1, 2) AS start, COUNT(*) AS n FROM people GROUP BY SUBSTRING(name, 1, 2);
SELECT UPPER(LTRIM(RTRIM(status))) AS s, COUNT(*) AS n FROM orders GROUP BY UPPER(LTRIM(RTRIM(status)));
-- duckdb: SELECT region || '/' || sex AS cell, COUNT(*) AS n FROM people WHERE region IS NOT NULL GROUP BY 1
SELECT region + '/' + sex AS cell, COUNT(*) AS n FROM people WHERE region IS NOT NULL GROUP BY region + '/' + sex;
SELECT CONCAT(region, '-', age / 10) AS cell, COUNT(*) AS n FROM people GROUP BY CONCAT(region, '-', age / 10);
SELECT REPLACE(status, 'e', 'E') AS s, COUNT(*) AS n FROM orders GROUP BY REPLACE(status, 'e', 'E');
SELECT CEILING(amount) AS c, COUNT(*) AS n FROM orders WHERE amount BETWEEN 0 AND 20 GROUP BY CEILING(amount);
SELECT SQUARE(3) * COUNT(*) AS n FROM people;
SELECT ROUND(AVG(amount), 2) AS mean FROM orders;
SELECT POWER(2, quantity) AS p, COUNT(*) AS n FROM orders GROUP BY POWER(2, quantity);
SELECT LOG10(SUM(quantity)) AS l FROM orders;
-- duckdb: SELECT CASE quantity WHEN 1 THEN 'one' WHEN 2 THEN 'two' WHEN 3 THEN 'three' END AS q, COUNT(*) AS n FROM orders GROUP BY q
SELECT CHOOSE(quantity, 'one', 'two', 'three') AS q, COUNT(*) AS n FROM orders GROUP BY CHOOSE(quantity, 'one', 'two', 'three');
SELECT CASE WHEN amount < 0 THEN 'refund' ELSE 'sale' END AS kind, SUM(amount) AS total FROM orders GROUP BY CASE WHEN amount < 0 THEN 'refund' ELSE 'sale' END;
SELECT p.region, COUNT(*) AS n FROM dbo.people AS p INNER JOIN dbo.orders AS o ON o.person_id = p.person_id GROUP BY p.region;
SELECT p.region, COUNT(o.order_id) AS n FROM people p LEFT OUTER JOIN orders o ON o.person_id = p.person_id GROUP BY p.region;
SELECT COUNT(*) FROM people WITH (NOLOCK) WHERE age > 40;
SELECT COUNT(*) AS n FROM people WHERE name LIKE N'Z%';
SELECT COUNT(*) AS n FROM people WHERE name LIKE '[A-C]%';
SELECT COUNT(*) AS n FROM orders WHERE TRY_CAST(note AS INT) IS NOT NULL;
SELECT SUM(amount) total, COUNT(*) n FROM orders WHERE status IN ('paid', 'sent');
-- duckdb: SELECT region, sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, sex)
SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex WITH ROLLUP;
-- duckdb: SELECT region, sex, COUNT(*) AS n FROM people GROUP BY CUBE (region, sex)
SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex WITH CUBE;
SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY COUNT(*) DESC OFFSET 0 ROWS FETCH NEXT 2 ROWS ONLY;
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS median FROM people;
SELECT APPROX_COUNT_DISTINCT(product) AS n FROM orders;
SELECT NULLIF(COUNT(*), 0) AS n FROM people;
SELECT CAST(COUNT(*) AS DECIMAL(10, 2)) / 7 AS n FROM people;
-- not yet: date | DATE_DIFF('day'
SELECT MIN(day) AS first_day FROM orders;
-- duckdb: SELECT COUNT(*) FROM orders WHERE dayofweek(day) = 0
SELECT COUNT(*) FROM orders WHERE DATEPART(weekday, day) = 1;
SELECT DATETRUNC(month, day) AS m, COUNT(*) AS n FROM orders GROUP BY DATETRUNC(month, day);
WITH totals AS (SELECT person_id, SUM(amount) AS total FROM dbo.orders GROUP BY person_id) SELECT COUNT(*) AS n FROM totals WHERE total > 50;
-- refused: GETDATE | Write the date
SELECT COUNT(*) FROM orders WHERE day > DATEADD(day, -7, GETDATE());
-- refused: A list of values
SELECT STRING_AGG(name, ',') FROM people;
-- refused: SELECT *
SELECT TOP 10 * FROM people;
-- refused: names the units
SELECT TOP 1 person_id, COUNT(*) AS n FROM orders GROUP BY person_id ORDER BY n DESC;
-- refused: INTO
SELECT COUNT(*) AS n INTO copy FROM people;
-- refused: WITH TIES
SELECT TOP 2 WITH TIES region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC;
-- refused: not SQL
EXEC sp_help 'people';
-- refused: Only SELECT
DROP TABLE people;
-- refused: scalar subquery
SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders);
-- refused: not
SELECT COUNT(*) FROM people CROSS APPLY (SELECT 1 AS x) t;
-- duckdb: SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS everybody FROM people WHERE region IS NOT NULL GROUP BY region
SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS everybody FROM people GROUP BY region;
SELECT TOP 1 region, n FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) t ORDER BY n DESC;
WITH numbered AS (SELECT o.*, ROW_NUMBER() OVER (PARTITION BY o.person_id ORDER BY o.placed DESC) AS rn FROM dbo.orders AS o) SELECT p.region, COUNT(*) AS n FROM dbo.people AS p JOIN numbered AS x ON x.person_id = p.person_id WHERE x.rn = 1 GROUP BY p.region;
-- duckdb: SELECT sex || sex AS s, COUNT(*) AS n FROM people GROUP BY s
SELECT REPLICATE(sex, 2) AS s, COUNT(*) AS n FROM people GROUP BY REPLICATE(sex, 2);
-- duckdb: SELECT status[1] || 'X' || substring(status, 4) AS d, COUNT(*) AS n FROM orders GROUP BY d
SELECT STUFF(status, 2, 2, 'X') AS d, COUNT(*) AS n FROM orders GROUP BY STUFF(status, 2, 2, 'X');
-- duckdb: SELECT instr(note, 'gift') AS d, COUNT(*) AS n FROM orders GROUP BY d
SELECT PATINDEX('%gift%', note) AS d, COUNT(*) AS n FROM orders GROUP BY PATINDEX('%gift%', note);
-- duckdb: SELECT TRY_CAST(note AS INTEGER) = 7 AS d, COUNT(*) AS n FROM orders GROUP BY d
SELECT TRY_CONVERT(int, note) = 7 AS d, COUNT(*) AS n FROM orders GROUP BY TRY_CONVERT(int, note) = 7;
-- duckdb: SELECT DATE_TRUNC('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT DATEADD(month, DATEDIFF(month, 0, placed), 0) AS m, COUNT(*) AS n FROM orders GROUP BY DATEADD(month, DATEDIFF(month, 0, placed), 0);
-- duckdb: SELECT DATE_TRUNC('year', placed) AS m, COUNT(*) AS n FROM orders GROUP BY m
SELECT DATEADD(yy, DATEDIFF(yy, 0, placed), 0) AS m, COUNT(*) AS n FROM orders GROUP BY DATEADD(yy, DATEDIFF(yy, 0, placed), 0);
-- not yet: DATEADD | DATE_TRUNC('week', d)
SELECT DATEADD(week, DATEDIFF(week, 0, placed), 0) AS m, COUNT(*) AS n FROM orders GROUP BY DATEADD(week, DATEDIFF(week, 0, placed), 0);
