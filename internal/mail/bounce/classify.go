package bounce

import (
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/reply"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// rules are the rules for the replies of next hops, because a report quotes such a reply. They never change.
var rules = reply.Builtin()

// onNumbersAlone are rules that test only a code. In a session, 550 is the reply to a recipient. In a
// report it may be the reply to another command, so it must not end a subscription.
var onNumbersAlone = []string{"no-such-mailbox", "no-storage-for-good", "command-refused", "no-answer", "cannot-be-sent"}

// classify returns the reason of a failed delivery from status, code and text. Words take precedence over
// numbers: a server that refuses a mailbox says so in words, whereas many servers use 5.1.1 or 5.7.1 for
// everything.
func (r *Report) classify() {
	said := strings.ToLower(r.Text)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	nobody := has(unknownWords)
	distrusted := has(blockedWords)
	switch {
	case has(fullWords) && !has(notFullWords):
		r.Class = fanfare.ClassFull
	case nobody && !distrusted, strings.Contains(said, edgeBlocking) && r.Status == "5.4.1":
		r.Class = fanfare.ClassInvalid
	case distrusted:
		r.Class = fanfare.ClassBlocked
	case has(contentWords):
		r.Class = fanfare.ClassContent
	case has(lateWords):
		r.Class = fanfare.ClassNetwork
	default:
		r.Class = byNumbers(r)
	}
	r.Certain = r.Class == fanfare.ClassInvalid && nobody && slices.Contains(noMailbox, r.statusOf())
}

// edgeBlocking is the text of Exchange Online for a recipient that is not in its directory, with the
// status 5.4.1 (Microsoft: Directory-Based Edge Blocking).
const edgeBlocking = "recipient address rejected: access denied"

// noMailbox are the statuses that are only about the address (RFC 3463, sections 3.2 and 3.3).
var noMailbox = []string{"5.1.1", "5.1.3", "5.1.6", "5.1.10", "5.2.1"}

// statusOf returns the status of the report, or the status in its text if that is more specific.
func (r *Report) statusOf() string {
	if own := statusIn(r.Text); own != "" && (r.Status == "" || strings.HasSuffix(r.Status, ".0.0")) {
		return own
	}
	return r.Status
}

func byNumbers(r *Report) fanfare.Class {
	status, outcome := r.statusOf(), driver.Outcome{Verdict: driver.Permanent, Code: r.Code}
	if r.Outcome == Delayed {
		outcome.Verdict = driver.Temporary
	}
	outcome.Text = strings.TrimSpace(status + " " + r.Text)
	if outcome.Code == 0 && status != "" {
		outcome.Code = int(status[0]-'0') * 100
	}
	reading := rules.Read("smtp", "", &outcome)
	if reading.Rule == nil || slices.Contains(onNumbersAlone, reading.Rule.Name) {
		return ""
	}
	return reading.Class
}

// These words in the reason of a server decide the class of a report. They are in lower case, and each is sufficient.

var fullWords = []string{
	"over quota", "overquota", "over its quota", "over his quota", "quota exceeded", "exceeded quota", "exceeds quota", "exceeded the quota", "exceeded its quota",
	"mailbox full", "mailbox is full", "mailfolder is full", "inbox is full", "storage full", "user is over", "out of storage", "insufficient storage",
	"exceeded storage allocation", "exceeded its storage", "has exceeded", "disk quota", "quotaexceeded", "mailbox size limit",
	"postfach ist voll", "postfach voll", "speicherplatz", "boîte pleine", "boite aux lettres pleine", "boîte aux lettres est pleine", "buzón lleno", "buzón está lleno",
	"casella piena", "casella è piena", "caixa de correio cheia", "caixa postal cheia", "mailbox vol", "skrzynka jest pełna", "przepełniona",
	"почтовый ящик переполнен", "ящик переполнен", "メールボックスがいっぱい", "容量超過", "邮箱已满", "空间不足", "邮箱空间",
}

// notFullWords contain words of fullWords, but describe a sending limit.
var notFullWords = []string{"rate", "messages per", "sending limit", "hourly", "daily", "has exceeded the maximum number of connections", "recipients per", "message size", "maximum message"}

var unknownWords = []string{
	"user unknown", "unknown user", "no such user", "no such recipient", "no such mailbox", "no such address", "no such account", "no such email", "no such person", "no mailbox here", "unknown recipient",
	"recipient unknown", "unknown mailbox", "unknown address", "address unknown", "unknown local", "unrouteable address", "unroutable address", "unknown or illegal alias", "user not found",
	"user does not exist", "user doesn't exist", "account does not exist", "account that you tried to reach does not exist", "address does not exist", "mailbox does not exist", "recipient does not exist",
	"email address could not be found", "address couldn't be found", "address wasn't found", "address could not be found", "wasn't found at", "couldn't be found", "recipient not found", "recipnotfound", "mailbox not found",
	"address not found", "mailbox unavailable or not found", "account not found", "no account by that name", "doesn't have a", "does not have an account", "this user doesn't have", "not a valid mailbox", "not a valid user",
	"invalid recipient", "invalid mailbox", "bad destination mailbox", "bad destination email", "not listed in domino directory", "not listed in public name", "not a known user", "not known at this",
	"recipient name is not recognized", "is not recognized", "account is disabled", "account disabled", "account has been disabled", "account is inactive", "mailbox is inactive", "mailbox disabled", "mailbox is disabled", "account has been deactivated",
	"account closed", "account is closed", "no longer available", "no longer in use", "no longer valid", "no longer active", "user has moved", "nonexistent", "non-existent", "no longer accept", "local user unknown",
	"host unknown", "unknown host", "domain not found", "domain name not found", "domain does not exist", "no such domain", "name or service not known", "couldn't find any host named", "could not find any host", "has no mail exchanger", "nonexistentdomain",
	"domain isn't in my list", "null mx",
	"empfänger unbekannt", "empfängeradresse unbekannt", "unbekannter empfänger", "adresse unbekannt", "benutzer unbekannt", "existiert nicht", "nicht gefunden", "postfach unbekannt",
	"utilisateur inconnu", "destinataire inconnu", "adresse inconnue", "introuvable", "n'existe pas", "non répertorié", "usuario desconocido", "destinatario desconocido", "no existe", "no se encuentra", "no se encontró",
	"utente sconosciuto", "destinatario sconosciuto", "non esiste", "inesistente", "usuário desconhecido", "utilizador desconhecido", "não existe", "não encontrado", "onbekende gebruiker", "gebruiker onbekend", "bestaat niet",
	"nie istnieje", "nieznany użytkownik", "nie ma takiego", "finns inte", "findes ikke", "okänd mottagare", "neexistuje", "bulunamadı",
	"не существует", "не найден", "пользователь не", "存在しません", "見つかりません", "宛先不明", "不存在", "找不到", "用户未找到", "존재하지",
}

var blockedWords = []string{
	"spamhaus", "spamcop", "barracudacentral", "sorbs", "dnsbl", "blacklist", "black list", "blocklist", "block list", "block-list", "blacklisted", "is blocked", "been blocked", "was blocked", "blocked by", "blocked using", "blocked due", "banned sending", "poor reputation",
	"low reputation", "bad reputation", "reputation", "senderscore", "sender score", "unsolicited", "spf check", "spf fail", "spf:", "dmarc", "dkim", "reverse dns", "ptr record", "not authorized to send", "not allowed to send", "sender rejected", "sender denied", "sender verify failed", "spoofing",
	"policy reasons", "local policy", "policy violation", "violates our policy", "security policies", "access denied", "not permitted", "too many complaints", "user complaints", "relay access denied", "unable to relay", "relaying denied", "relaying not allowed", "relay not permitted", "authrequired",
	"only accepts mail from", "restricted to", "notauthorized", "permission to send", "sender not authenticated", "abusive", "tls required",
}

var contentWords = []string{
	"spam", "junk mail", "virus", "malware", "phish", "content rejected", "content denied", "message rejected", "message refused", "content filter", "prohibited attachment", "attachment type", "banned file", "blocked attachment", "looks like", "suspicious",
	"too large", "too big", "exceeds the maximum", "exceeds fixed maximum", "exceeds size limit", "size limit exceeded", "message size exceeds", "maximum message size", "recipsizelimit", "exceeded fixed maximum", "line too long", "bad header", "header error",
	"zu groß", "trop volumineux", "demasiado grande", "troppo grande",
}

var lateWords = []string{
	"retry timeout exceeded", "retry time not reached", "delivery time expired", "message expired", "queue.expired", "has expired", "in the queue too long", "been in queue too long", "too long in queue", "connection timed out", "connection refused", "timed out", "no route to host", "network is unreachable",
	"could not be reached", "unable to connect", "couldn't connect", "could not connect", "too many hops", "mail loop", "loops back to myself", "hop count exceeded", "routing loop", "temporary failure", "temporary lookup failure", "temporarily unavailable", "not responding", "lost connection", "name service error", "server failure", "dns server returned answer with no data",
	"all relevant mx records point to non-existent hosts", "did not respond", "isn't responding", "greylist", "try again later", "too many connections",
}
