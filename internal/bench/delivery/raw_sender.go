package delivery

import (
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// checkAgainstSMTPSource compares the raw sender with smtp-source of Postfix. A raw
// sender below 1.5 times its rate is not a valid limit.
func checkAgainstSMTPSource(l *harness.Env, r *report.Record, n int) error {
	if l.TLS {
		r.Note("smtp-source does not support STARTTLS: the limit is not checked against it")
		return nil
	}
	program, missing := harness.LookPostfix("smtp-source")
	if missing != nil {
		r.Note("%v: the limit is not checked against it", missing)
		return nil
	}
	rate, err := rawlimit.SMTPSource(l, program, min(n, 200_000))
	if err != nil {
		return err
	}
	switch {
	case r.Limit < 1.5*rate:
		r.Ratio = 0
		r.Note("smtp-source -d: %s mails/s. The raw sender is slower than 1.5 times that: THE RATIO IS VOID", report.Figure(rate))
	default:
		r.Note("smtp-source -d: %s mails/s, the raw sender is %.2f times as fast", report.Figure(rate), r.Limit/rate)
	}
	return nil
}

// RunRaw is N5.
func RunRaw(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["connections"], r.Params["sink"], r.Params["tls"] = n, loadgen.Connections, l.Sink, l.TLS
	raw, err := rawlimit.SendRaw(l, n)
	if err != nil {
		return err
	}
	r.Value = raw.PerSecond
	r.SetLimit(raw.PerSecond)
	r.Note("a mail has %d bytes, mode %s; CPU for a mail: sender %.1f us, sink %.1f us", l.Sample.Size, raw.Mode, raw.Sender, raw.SinkMicro)
	return checkAgainstSMTPSource(l, r, n)
}
