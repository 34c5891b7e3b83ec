package dkim

// signedFields are the header fields that a signature covers if the message has them: the fields
// of RFC 6376, section 5.4.1, that Fanfare may write, the two that RFC 8058, section 4, requires,
// and those of RFC 9477, section 3.2.
var signedFields = [...]string{
	"From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References",
	"List-Id", "List-Help", "List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted", "Feedback-ID",
	"CFBL-Address", "CFBL-Feedback-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding",
}

// uniqueFields are listed in h= once more than the message has them, so that adding another one
// breaks the signature.
var uniqueFields = []string{"From", "To", "Subject", "Date"}

// fieldsByLength lists the indexes of the signed fields by the length of their names.
var fieldsByLength = func() (all [longestName + 1][]int) {
	for i, name := range signedFields {
		all[len(name)] = append(all[len(name)], i)
	}
	return all
}()

const longestName = len("Content-Transfer-Encoding")

// fieldSet has a bit for each signed field that a message has.
type fieldSet uint32
