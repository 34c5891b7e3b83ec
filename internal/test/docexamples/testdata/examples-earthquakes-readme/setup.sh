fanfare demo files ./earthquakes --example earthquakes --subscriptions 1000
fanfare apply -f earthquakes/fanfare.yaml
