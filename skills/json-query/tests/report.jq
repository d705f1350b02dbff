# Spending by country, the largest first.
.customers as $customers
| [ .orders[]
    | .customer as $id
    | { country: (first($customers[] | select(.id == $id)) | .country), total } ]
| group_by(.country)
| map({ country: .[0].country, orders: length, total: (map(.total) | add) })
| sort_by(-.total)
