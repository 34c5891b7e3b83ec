package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// status is what people see of a PostgreSQL, nil with files.
func (d *database) status() *wire.Database {
	remote := d.remote()
	if remote == nil {
		return nil
	}
	of := remote.Stats()
	s := &wire.Database{Where: d.about().Where, Version: d.about().Version, Retries: of.Retries, Losses: of.Losses}
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

// databaseMetrics are the counters of a PostgreSQL, as it counts them.
type databaseMetrics struct {
	of interface{ Stats() postgres.Stats }
}

var (
	databaseUp      = prometheus.NewDesc("fanfare_database_up", "1 while PostgreSQL can be reached, 0 while it is away.", nil, nil)
	databaseStandby = prometheus.NewDesc("fanfare_database_standby_up", "1 while the standby of db_reads is read from, 0 while the primary answers for it; absent without one.", nil, nil)
	databaseRetries = prometheus.NewDesc("fanfare_database_retries_total", "Statements and transactions that were run again after a conflict or a lost connection.", nil, nil)
	databaseLosses  = prometheus.NewDesc("fanfare_database_lost_connections_total", "Connections that were lost while they were used.", nil, nil)
	databaseOpen    = prometheus.NewDesc("fanfare_database_connections", "Open connections, by what they are for.", []string{"use"}, nil)
	databaseBusy    = prometheus.NewDesc("fanfare_database_connections_busy", "Connections at work, by what they are for.", []string{"use"}, nil)
	databaseMost    = prometheus.NewDesc("fanfare_database_connections_max", "Connections that may be open at once, by what they are for.", []string{"use"}, nil)
	databaseWaits   = prometheus.NewDesc("fanfare_database_waits_total", "Calls that found no idle connection, by what it is for.", []string{"use"}, nil)
	databaseWaited  = prometheus.NewDesc("fanfare_database_waited_seconds_total", "How long these waited, all together.", []string{"use"}, nil)
)

// Describe names the metrics.
func (m *databaseMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{databaseUp, databaseStandby, databaseRetries, databaseLosses, databaseOpen, databaseBusy, databaseMost, databaseWaits, databaseWaited} {
		to <- d
	}
}

// Collect reads them.
func (m *databaseMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.of.Stats()
	up := 1.0
	if s.Away {
		up = 0
	}
	to <- prometheus.MustNewConstMetric(databaseUp, prometheus.GaugeValue, up)
	if _, has := s.Pools["standby"]; has {
		standby := 1.0
		if s.Absent {
			standby = 0
		}
		to <- prometheus.MustNewConstMetric(databaseStandby, prometheus.GaugeValue, standby)
	}
	to <- prometheus.MustNewConstMetric(databaseRetries, prometheus.CounterValue, float64(s.Retries))
	to <- prometheus.MustNewConstMetric(databaseLosses, prometheus.CounterValue, float64(s.Losses))
	for use, pool := range s.Pools {
		to <- prometheus.MustNewConstMetric(databaseOpen, prometheus.GaugeValue, float64(pool.Open), use)
		to <- prometheus.MustNewConstMetric(databaseBusy, prometheus.GaugeValue, float64(pool.Busy), use)
		to <- prometheus.MustNewConstMetric(databaseMost, prometheus.GaugeValue, float64(pool.Max), use)
		to <- prometheus.MustNewConstMetric(databaseWaits, prometheus.CounterValue, float64(pool.Waits), use)
		to <- prometheus.MustNewConstMetric(databaseWaited, prometheus.CounterValue, pool.Waited.Seconds(), use)
	}
}

// Describe and Collect are those of the PostgreSQL that is in charge; files have
// no counters.
func (d *database) Describe(to chan<- *prometheus.Desc) { (&databaseMetrics{}).Describe(to) }

// Collect is as Describe.
func (d *database) Collect(to chan<- prometheus.Metric) {
	if remote := d.remote(); remote != nil {
		(&databaseMetrics{remote}).Collect(to)
	}
}
