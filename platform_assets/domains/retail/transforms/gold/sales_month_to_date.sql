-- Sales per store and department since the first of the month. `daily_sales` has a day's rows once for every day that
-- reads them: `event_date` is that day.
SELECT
    event_date,
    store_id,
    department,
    sum(lines) AS lines,
    sum(baskets) AS baskets,
    sum(units) AS units,
    CAST(sum(gross) AS decimal(18, 2)) AS gross,
    CAST(sum(discounts) AS decimal(18, 2)) AS discounts,
    CAST(sum(net) AS decimal(18, 2)) AS net
FROM daily_sales
GROUP BY event_date, store_id, department
