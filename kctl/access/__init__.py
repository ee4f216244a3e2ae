"""Who may do what: rules, the authorizer's algorithm, forecasts and findings."""
