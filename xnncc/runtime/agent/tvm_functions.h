/* tvm_functions.h: the functions that a client of TVM's RPC finds by name. */
#ifndef XNN_AGENT_TVM_FUNCTIONS_H
#define XNN_AGENT_TVM_FUNCTIONS_H

#include "tvm_session.h"

/* The number of the function of that name, 0 when there is none. */
int xnn_tvm_function(const xnn_tvm_arg *name);

/* Call it with session->args; session->out is the answer. */
void xnn_tvm_call_function(xnn_tvm_session *session, int number);

#endif
