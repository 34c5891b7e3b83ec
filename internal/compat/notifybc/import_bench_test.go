package notifybc

import (
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/mongoexport"
)

// BenchmarkImportedDocument converts a document of an export to the members of a subscription.
func BenchmarkImportedDocument(b *testing.B) {
	line := []byte(`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345671"},"serviceName":"myService","channel":"email","userChannelId":"user@example.com","state":"confirmed","unsubscriptionCode":"12345","confirmationRequest":{"confirmationCodeRegex":"\\d{5}","confirmationCode":"54321","sendRequest":true,"from":"no_reply@example.org","subject":"Subscription confirmation","textBody":"Enter {subscription_confirmation_code} on screen"},"broadcastPushNotificationFilter":"contains_ci(title,'word')","data":{"province":"BC"},"created":{"$date":"2021-05-06T07:08:09.123Z"},"updated":{"$date":"2021-05-06T07:08:09.123Z"},"createdBy":{"role":"Anonymous"},"updatedBy":{"role":"Anonymous"},"__v":0}`)
	b.ReportAllocs()
	for b.Loop() {
		m, err := mongoexport.Members(line)
		if err != nil {
			b.Fatal(err)
		}
		s := &subscription{}
		if err := s.take(m); err != nil {
			b.Fatal(err)
		}
	}
}
