package bounce

import (
	"slices"
	"strings"
)

// bounces reports whether a message that is no report in a standard form is one
// by its sender, its subject or its words.
func bounces(h header, text string) bool {
	if h.get("x-failed-recipients") != "" || h.get("x-ms-embedded-report") != "" || len(h["x-amavis-alert"]) > 0 {
		return true
	}
	if kind, params := mediaType(h.get("content-type")); kind == "multipart/report" && strings.EqualFold(params["report-type"], "delivery-status") {
		return true
	}
	head := strings.ToLower(text[:min(len(text), 4<<10)])
	says := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(head, w) })
	}
	subject := h.words("subject")
	if slices.ContainsFunc(bounceSubjects, func(s string) bool { return strings.Contains(subject, s) }) {
		return fromMachine(h) || says(bounceBodies) || statusIn(head) != "" || replyIn(head) != 0
	}
	return says(bounceBodies) && (fromMachine(h) || !strings.HasPrefix(subject, "re:"))
}

// fromMachine reports whether a mail system calls itself the author.
func fromMachine(h header) bool {
	from := h.words("from")
	return slices.ContainsFunc(machines, func(m string) bool { return strings.Contains(from, m) })
}

var machines = []string{"mailer-daemon", "mailer_daemon", "mailerdaemon", "postmaster", "mail delivery", "mdaemon", "mail administrator", "mail-daemon", "system administrator", "bounce", "microsoftexchange", "administrator", "mail.system", "mailsystem", "mail system", "smtpd@", "mailman"}

var bounceSubjects = []string{
	"undeliver", "undelivered", "non remis", "delivery status notification", "delivery failure", "delivery failed", "mail delivery", "returned mail", "failure notice", "failure notification", "delivery notification", "delivery report", "message not delivered", "could not be delivered", "nondeliverable",
	"non-deliver", "mail system error", "mail failure", "warning: message", "delivery problem", "delivery has failed", "rejected:", "message undeliverable", "permanent delivery failure", "there was an error sending your mail", "returned to sender", "returning message", "failed mail", "message delivery", "bounce", "mail could not be delivered", "delayed mail", "delay notice", "mail returned", "email returned", "your mail to",
	"unzustellbar", "nicht zugestellt", "zustellung", "échec de la remise", "echec de la remise", "message non distribu", "no se puede entregar", "no entregad", "no se pudo entregar", "mancato recapito", "non recapitabile", "impossibile recapitare", "não entregue", "não foi possível entregar", "onbestelbaar", "niet bezorgd", "nie dostarcz", "niedostarcz", "nie można dostarczyć", "недоставленное", "не доставлено", "недоставка", //nolint:misspell // Italian
	"配信不能", "配信でき", "送信できません", "系统退信", "退信", "无法投递", "投递失败", "반송", "kan inte levereras", "kunne ikke leveres", "iletilemedi", "nedoručiteln",
}

var bounceBodies = []string{
	"this message was created automatically by mail delivery", "this is the mail system at host", "hi. this is the", "message could not be delivered", "could not be delivered", "couldn't be delivered", "can't be delivered", "cannot be delivered", "was not delivered", "wasn't delivered", "were not delivered", "not delivered to", "unable to deliver", "not able to deliver", "delivery to the following recipient", "delivery has failed", "delivery failed",
	"did not reach the following recipient", "had permanent fatal errors", "had transient non-fatal errors", "had delivery problems", "did not receive a copy of your message", "failed addresses follow", "undeliverable to the following", "returned mail", "returned to sender", "failed permanently", "has been delayed", "returned to you", "permanent error", "error sending your mail", "recipient was rejected", "has been rejected", "rejected your message",
	"delivery of your message", "could not deliver", "delivery to these recipients", "this is a permanent error", "giving up on", "failed recipient", "temporarily deferred", "will be retried", "undeliverable",
	"konnte nicht zugestellt", "nicht zugestellt werden", "konnte nicht ausgeliefert", "n'a pas pu être", "n'a pu être", "no pudo ser entregado", "no se ha podido entregar", "no se ha entregado", "non è stato possibile", "non è stato recapitato", "não pôde ser entregue", "não foi possível entregar", "kon niet worden", "niet worden bezorgd", "nie może być dostarczon", "nie mogła zostać dostarczona", "nie została dostarczona", "не может быть доставлено", "не удалось доставить", "не было доставлено", //nolint:misspell // Italian
	"配信できませんでした", "配信不能", "届けることができません", "无法投递", "无法送达", "退信", "배달되지", "kunde inte levereras", "kunne ikke leveres",
}
