package database

import (
	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// Status returns the state of a PostgreSQL, or nil for files.
func (d *DB) Status() *wire.Database {
	remote := d.Postgres()
	if remote == nil {
		return nil
	}
	of := remote.Stats()
	s := &wire.Database{Where: d.About().Where, Version: d.About().Version, Retries: of.Retries, Losses: of.Losses}
	if since, why := remote.Away(); !since.IsZero() {
		since = since.UTC()
		s.Away, s.Error = &since, postgres.OneLine(why)
	}
	for name, pool := range of.Pools {
		if name != "standby" {
			s.Connections, s.Busy, s.Most = s.Connections+pool.Open, s.Busy+pool.Busy, s.Most+pool.Max
		}
	}
	return s
}

var (
	upDesc      = prometheus.NewDesc("fanfare_database_up", "1 if PostgreSQL can be reached, 0 otherwise.", nil, nil)
	standbyDesc = prometheus.NewDesc("fanfare_database_standby_up", "1 if reports are read from the standby in db_reads, 0 if they are read from the primary; absent if db_reads is not set.", nil, nil)
	retriesDesc = prometheus.NewDesc("fanfare_database_retries_total", "Statements and transactions that were retried after a conflict or a lost connection.", nil, nil)
	lossesDesc  = prometheus.NewDesc("fanfare_database_lost_connections_total", "Connections that were lost while in use.", nil, nil)
	openDesc    = prometheus.NewDesc("fanfare_database_connections", "Open connections, by use.", []string{"use"}, nil)
	busyDesc    = prometheus.NewDesc("fanfare_database_connections_busy", "Busy connections, by use.", []string{"use"}, nil)
	mostDesc    = prometheus.NewDesc("fanfare_database_connections_max", "Maximum number of open connections, by use.", []string{"use"}, nil)
	waitsDesc   = prometheus.NewDesc("fanfare_database_waits_total", "Calls that had to wait for a connection, by use.", []string{"use"}, nil)
	waitedDesc  = prometheus.NewDesc("fanfare_database_waited_seconds_total", "Total time for which calls waited for a connection, by use.", []string{"use"}, nil)
)

// Describe names the metrics of a PostgreSQL; files have none.
func (d *DB) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{upDesc, standbyDesc, retriesDesc, lossesDesc, openDesc, busyDesc, mostDesc, waitsDesc, waitedDesc} {
		to <- desc
	}
}

// Collect reads the counters of the PostgreSQL that is in use.
func (d *DB) Collect(to chan<- prometheus.Metric) {
	remote := d.Postgres()
	if remote == nil {
		return
	}
	s := remote.Stats()
	up := 1.0
	if s.Away {
		up = 0
	}
	to <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up)
	if _, has := s.Pools["standby"]; has {
		standby := 1.0
		if s.Absent {
			standby = 0
		}
		to <- prometheus.MustNewConstMetric(standbyDesc, prometheus.GaugeValue, standby)
	}
	to <- prometheus.MustNewConstMetric(retriesDesc, prometheus.CounterValue, float64(s.Retries))
	to <- prometheus.MustNewConstMetric(lossesDesc, prometheus.CounterValue, float64(s.Losses))
	for use, pool := range s.Pools {
		to <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(pool.Open), use)
		to <- prometheus.MustNewConstMetric(busyDesc, prometheus.GaugeValue, float64(pool.Busy), use)
		to <- prometheus.MustNewConstMetric(mostDesc, prometheus.GaugeValue, float64(pool.Max), use)
		to <- prometheus.MustNewConstMetric(waitsDesc, prometheus.CounterValue, float64(pool.Waits), use)
		to <- prometheus.MustNewConstMetric(waitedDesc, prometheus.CounterValue, pool.Waited.Seconds(), use)
	}
}
