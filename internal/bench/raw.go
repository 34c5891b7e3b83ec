package bench

// rule holds the raw sender against Postfix's: below 1.5 times of it, it is no
// limit and the ratio says nothing.
func (l *lab) rule(r *Record, n int) error {
	if l.TLS {
		r.note("smtp-source does not speak STARTTLS: the limit is not held against it")
		return nil
	}
	program, missing := lookPostfix("smtp-source")
	if missing != nil {
		r.note("%v: the limit is not held against it", missing)
		return nil
	}
	rate, err := l.smtpSource(program, min(n, 200_000))
	if err != nil {
		return err
	}
	switch {
	case r.Limit < 1.5*rate:
		r.Ratio = 0
		r.note("smtp-source -d: %s mails/s. The raw sender is below 1.5 times of that: THE RATIO IS VOID", figure(rate))
	default:
		r.note("smtp-source -d: %s mails/s, the raw sender is %.2f times as fast", figure(rate), r.Limit/rate)
	}
	return nil
}

// runRaw is N5.
func runRaw(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["connections"], r.Params["sink"], r.Params["tls"] = n, connections, l.Sink, l.TLS
	raw, err := l.blast(n)
	if err != nil {
		return err
	}
	r.Value = raw.perSecond
	r.limit(raw.perSecond)
	r.note("%d bytes a mail, mode %s; CPU a mail: sender %.1f us, sink %.1f us", l.sample.size, raw.mode, raw.sender, raw.sinkMicro)
	return l.rule(r, n)
}
