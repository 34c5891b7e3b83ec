// Package sends sends messages to uploaded lists. A send is written as a draft, submitted, approved by a person who is not an author, and sent at
// its time in parts, each of which is one message of package messages. The API calls it.
//
//	sends.go    creates, changes and lists sends
//	approve.go  submits and approves them; decides who may approve
//	csv.go      reads the rows of a CSV file
//	upload.go   checks the rows of a list and stores them
//	rows.go     is the stored form of rows and errors
//	drive.go    sends, pauses and cancels
//	report.go   reports the progress, and the outcome of each row
//	erase.go    removes and exports the rows of a person
//
// State. All sends are in memory without their rows, and in the store with them. Rows are stored in chunks; a chunk is sent as one part. An upload
// stores its chunks under a number of its own, and replaces those of the previous upload when it is complete. A send is deleted with its
// list some time after its end.
//
// Failure. A change is durable when its method returns. Before a part is sent, the store notes that it begins; after a crash, the part is looked
// up among the accepted events before it is sent again. So each part is sent exactly once, however long the server was down, as long as
// the events of that time are stored; after that, the send pauses and an operator decides. The server runs the package on the leader of a cluster only.
package sends
