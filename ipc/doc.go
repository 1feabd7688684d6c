// Package ipc serves the event log as Agent API v1 over a Unix socket, and is
// the client of that service. The messages are JSON-RPC 2.0, one object a line,
// no batches; package wire has their results. Requests of one connection are
// worked on at the same time and answered as they are ready.
//
//	-> {"jsonrpc":"2.0","id":1,"method":"Hello","params":{"client":"doc","api_major":1}}
//	<- {"jsonrpc":"2.0","id":1,"result":{"schema":"wakterm.agent-api.v1","api_major":1,"service":"steno","version":"0.0.1"}}
//	-> {"jsonrpc":"2.0","id":2,"method":"Capabilities"}
//	<- {"jsonrpc":"2.0","id":2,"result":{"schema":"wakterm.agent-api.v1","api_major":1,"capabilities":["catalog.v1","prompt_admission.v1","return_request_terminal_stream.v1","event_stream.v1"]}}
//	-> {"jsonrpc":"2.0","id":3,"method":"Catalog"}
//	<- {"jsonrpc":"2.0","id":3,"result":{"schema":"wakterm.agent-api.v1","as_of_event_sequence":1,"agents":[{"agent_id":"ag-7f","incarnation_id":"inc-a","pane_id":3,"name":"maple","harness":"claude","status":"idle","turn_state":"waiting_on_user","alive":true,"observed_at":"2027-01-02T12:00:00Z"}]}}
//	-> {"jsonrpc":"2.0","id":4,"method":"ReadAgentEvents","params":{"after_sequence":0,"limit":100,"wait_ms":5000}}
//	<- {"jsonrpc":"2.0","id":4,"result":{"schema":"wakterm.agent-events.v1","status":"ok","requested_after_sequence":0,"oldest_available_sequence":1,"latest_sequence":1,"next_after_sequence":1,"events":[{"sequence":1,"event_id":"event-0001","kind":"assistant_message","agent_id":"ag-7f","incarnation_id":"inc-a","observed_at":"2027-01-02T12:00:00Z","turn_id":"turn-1","lifecycle":null,"reason":null,"turn_state":null,"text":"Done.","outcome":null,"recoverable":null,"detail":null,"approval":null,"input_sha256":null}],"recovery":null}}
//	-> {"jsonrpc":"2.0","id":5,"method":"ReadAgentEvents","params":{"after_sequence":9}}
//	<- {"jsonrpc":"2.0","id":5,"result":{"schema":"wakterm.agent-events.v1","status":"cursor_too_old","requested_after_sequence":9,"oldest_available_sequence":1,"latest_sequence":1,"next_after_sequence":null,"events":[],"recovery":{"kind":"catalog_snapshot","catalog_as_of_sequence":1}}}
//	-> {"jsonrpc":"2.0","id":6,"method":"ReadAgentEvents","params":{"limit":5000}}
//	<- {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"limit must be from 1 to 1000","data":{"code":"invalid_params"}}}
//
// The other methods are ListAgents, ListPanes, Status, Explain {target},
// AdmitPrompt and ReadRequests {after_terminal_sequence, limit}; those of
// ReadAgentEvents's parameters that are not shown are kinds and agents.
//
// Promises. A cursor that was pruned away or lies beyond the head gives
// cursor_too_old. A commit between the read and the wait ends the wait. A bad
// request gets an error with a stable data.code and leaves the connection of
// use; its message is for people. A client that shuts down its writing side
// gets its answers without further waiting, one that closes costs nothing more.
// event_stream.v1 is a capability only while the log works. With a filter the
// next cursor is the last event examined, without one the last event sent.
//
// Prompts. A consumer of the Agent API asks at its start for prompt_admission.v1
// and return_request_terminal_stream.v1 and gives up without them, so both are
// listed. Steno writes into no pane: every prompt is refused by a definitive
// receipt with prompt_written false, and no return request ever ends.
// approval_control.v1 is not listed.
//
// Refusals. Users other than root and the one who runs the daemon (as the kernel
// tells them); from a client in another network or user namespace, or one that
// cannot be told, all but Hello, Capabilities and Catalog; connections over 256,
// or over a quarter of the descriptors that the process may have; event kinds in
// a filter that are not one of the eight; another major version.
//
// Bounds: request line 2 MiB within 30 s of its first byte, id 256 bytes, page
// 1,000 events and below 1,000,000 bytes with its envelope, wait 30 s, filter
// 256 names of 256 bytes, 16 requests in flight on a connection, 5 s for a
// client to take an answer, and one page in memory per connection beside the
// one being written. One goroutine per request, three per connection.
package ipc
