// Streams, events and graphs: their handles and most of their calls are the runtime's.
#include "libcuda/cu.h"

CU_PASS(cuStreamCreate, (CUstream * out, unsigned flags), cudaStreamCreateWithFlags(out, flags))
CU_PASS(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
        cudaStreamCreateWithPriority(out, flags, priority))
CU_PASS(cuStreamDestroy, (CUstream stream), cudaStreamDestroy(stream))
CU_PASS(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize(stream))
CU_PASS(cuStreamQuery, (CUstream stream), cudaStreamQuery(stream))
CU_PASS(cuStreamGetPriority, (CUstream stream, int *out), cudaStreamGetPriority(stream, out))
CU_PASS(cuStreamGetFlags, (CUstream stream, unsigned *out), cudaStreamGetFlags(stream, out))
CU_PASS(cuStreamGetId, (CUstream stream, unsigned long long *out), cudaStreamGetId(stream, out))
CU_PASS(cuStreamGetDevice, (CUstream stream, CUdevice *out), cudaStreamGetDevice(stream, out))
CU_PASS(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
        cudaStreamWaitEvent(stream, event, flags))
CU_PASS(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr memory, size_t bytes, unsigned flags),
        cudaStreamAttachMemAsync(stream, cu_memory(memory), bytes, flags))
CU_PASS(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
        cudaLaunchHostFunc(stream, function, data))
// The runtime's callback takes a cudaError_t, whose codes are the same.
CU_PASS(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags),
        cudaStreamAddCallback(stream, (cudaStreamCallback_t)(void (*)(void))callback, data, flags))

CU_PASS(cuEventCreate, (CUevent * out, unsigned flags), cudaEventCreateWithFlags(out, flags))
CU_PASS(cuEventDestroy, (CUevent event), cudaEventDestroy(event))
CU_PASS(cuEventRecord, (CUevent event, CUstream stream), cudaEventRecord(event, stream))
CU_PASS(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
        cudaEventRecordWithFlags(event, stream, flags))
CU_PASS(cuEventSynchronize, (CUevent event), cudaEventSynchronize(event))
CU_PASS(cuEventQuery, (CUevent event), cudaEventQuery(event))
CU_PASS(cuEventElapsedTime, (float *out, CUevent start, CUevent end),
        out ? cudaEventElapsedTime(out, start, end) : cudaErrorInvalidResourceHandle)

// ---- captures and graphs ----

CU_PASS(cuStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode),
        cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode))
CU_PASS(cuStreamEndCapture, (CUstream stream, CUgraph *out), cudaStreamEndCapture(stream, out))
CU_PASS(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *out),
        cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)out))
CU_PASS(cuStreamGetCaptureInfo,
        (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
         const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count),
        cudaStreamGetCaptureInfo(stream, (enum cudaStreamCaptureStatus *)status, (unsigned long long *)id,
                                 graph, nodes, (const cudaGraphEdgeData **)edges, count))
CU_PASS(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
        cudaThreadExchangeStreamCaptureMode((enum cudaStreamCaptureMode *)mode))
CU_PASS(cuGraphCreate, (CUgraph * out, unsigned flags), cudaGraphCreate(out, flags))
CU_PASS(cuGraphDestroy, (CUgraph graph), cudaGraphDestroy(graph))
CU_PASS(cuGraphClone, (CUgraph * out, CUgraph graph), cudaGraphClone(out, graph))
CU_PASS(cuGraphGetNodes, (CUgraph graph, CUgraphNode *out, size_t *count),
        cudaGraphGetNodes(graph, out, count))
CU_PASS(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *out, size_t *count),
        cudaGraphGetRootNodes(graph, out, count))
CU_PASS(cuGraphDestroyNode, (CUgraphNode node), cudaGraphDestroyNode(node))
CU_PASS(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *out),
        cudaGraphNodeGetType(node, (enum cudaGraphNodeType *)out))
CU_PASS(cuGraphAddEmptyNode, (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, size_t count),
        cudaGraphAddEmptyNode(out, graph, needs, count))
CU_PASS(cuGraphAddChildGraphNode,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, size_t count, CUgraph child),
        cudaGraphAddChildGraphNode(out, graph, needs, count, child))
CU_PASS(cuGraphAddDependencies,
        (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
         size_t count),
        cudaGraphAddDependencies(graph, from, to, (const cudaGraphEdgeData *)edges, count))
CU_PASS(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph graph, unsigned long long flags),
        cudaGraphInstantiate(out, graph, flags))
CU_PASS(cuGraphExecDestroy, (CUgraphExec exec), cudaGraphExecDestroy(exec))
CU_PASS(cuGraphLaunch, (CUgraphExec exec, CUstream stream), cudaGraphLaunch(exec, stream))
CU_PASS(cuGraphUpload, (CUgraphExec exec, CUstream stream), cudaGraphUpload(exec, stream))
