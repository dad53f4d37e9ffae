// Package proxy stands between an operator and a server, sees every write, and makes the chosen
// ones go wrong.
//
//	operator --plain HTTP--> Proxy --the operator's identity--> API server, or a forge
//
// A write has a class, such as "update addonrollouts/status Progressing" or "post statuses
// success". A Fault names a class and which of its writes it hits: by position, so that a run
// that is repeated meets it at the same write. Watches are read event by event: the events of
// one resource can be held back, and a watch can be ended with 410 Gone.
//
// The operator speaks JSON here, because the request for protobuf is taken out of its Accept
// header; bodies and events can then be read without its types.
package proxy
