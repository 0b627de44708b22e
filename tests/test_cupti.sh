#!/usr/bin/env bash
# What src/measure/cupti.h declares of CUPTI's ABI is what CUPTI's own headers say, where they are to be had, and counters
# that belong together come of one pass.
set -u
include=$(scripts/cuda-env include)
[ -f "$include/cupti_range_profiler.h" ] || { echo "no headers of CUPTI" && exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
: >"$scratch/string" # a header of C++, which one of CUPTI's includes for nothing
cat >"$scratch/layout.c" <<'C'
#include <stddef.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include "driver/cuda.h"
#include "inject/graphs.h"
#include "measure/cupti.h"

#define SAME(ours, field, theirs, member)                                                            \
  _Static_assert(offsetof(ours, field) == offsetof(theirs, member) &&                                \
                     sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->member),                    \
                 #ours "." #field)
#define WHOLE(ours, last, theirs)                                                                    \
  _Static_assert(CUPTI_SIZE(ours, last) == theirs##_STRUCT_SIZE, #ours)
#define VALUE(ours, theirs) _Static_assert((int)ours == (int)theirs, #ours)
#define AT(params, member, offset) _Static_assert(offsetof(params, member) == offset, #params "." #member)

WHOLE(CuptiInitialize, priv, CUpti_Profiler_Initialize_Params);
WHOLE(CuptiChipName, name, CUpti_Device_GetChipName_Params);
WHOLE(CuptiAvailability, image, CUpti_Profiler_GetCounterAvailability_Params);
SAME(CuptiAvailability, image_size, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize);
#define HOST(ours, last, theirs) WHOLE(CuptiHost##ours, last, CUpti_Profiler_Host_##theirs##_Params)
HOST(Initialize, host, Initialize);
SAME(CuptiHostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
HOST(Deinitialize, host, Deinitialize);
HOST(Properties, type, GetMetricProperties);
SAME(CuptiHostProperties, metric, CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName);
HOST(Add, count, ConfigAddMetrics);
HOST(ImageSize, image_size, GetConfigImageSize);
HOST(Image, image, GetConfigImage);
HOST(Passes, passes, GetNumOfPasses);
HOST(Evaluate, values, EvaluateToGpuValues);
SAME(CuptiHostEvaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME(CuptiHostEvaluate, metrics, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
#define RANGE(ours, last, theirs) WHOLE(CuptiRange##ours, last, CUpti_RangeProfiler_##theirs##_Params)
RANGE(Enable, profiler, Enable);
SAME(CuptiRangeEnable, context, CUpti_RangeProfiler_Enable_Params, ctx);
RANGE(, profiler, Disable);
RANGE(, profiler, Start);
RANGE(, profiler, PopRange);
RANGE(Push, name, PushRange);
RANGE(Stop, all_passes, Stop);
RANGE(Decode, dropped, DecodeData);
RANGE(Config, nesting_target, SetConfig);
#define CONFIG(field, member) SAME(CuptiRangeConfig, field, CUpti_RangeProfiler_SetConfig_Params, member)
CONFIG(image, pConfig);
CONFIG(data, pCounterDataImage);
CONFIG(range, range);
CONFIG(replay, replayMode);
CONFIG(most_ranges, maxRangesPerPass);
CONFIG(nesting_levels, numNestingLevels);
CONFIG(nesting_least, minNestingLevel);
CONFIG(pass, passIndex);
RANGE(DataSize, data_size, GetCounterDataSize);
SAME(CuptiRangeDataSize, metrics, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
SAME(CuptiRangeDataSize, most_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
RANGE(DataInit, data, CounterDataImage_Initialize);
RANGE(DataInfo, ranges, GetCounterDataInfo);

#define SASS(ours, last, theirs) WHOLE(CuptiSass##ours, last, CUpti_SassMetrics##theirs##_Params)
SASS(Properties, metric, _GetProperties);
SAME(CuptiSassProperties, name, CUpti_SassMetrics_GetProperties_Params, pMetricName);
SAME(CuptiSassMetric, id, CUpti_SassMetrics_MetricDetails, metricId);
SAME(CuptiSassConfig, granularity, CUpti_SassMetrics_Config, outputGranularity);
SASS(SetConfig, device, SetConfig);
SAME(CuptiSassSetConfig, config, CUpti_SassMetricsSetConfig_Params, pConfigs);
SASS(UnsetConfig, device, UnsetConfig);
SASS(Enable, lazily, Enable);
SASS(Disable, dropped, Disable);
SASS(DataSize, instances, GetDataProperties);
SAME(CuptiSassValue, value, CUpti_SassMetrics_InstanceValue, value);
SAME(CuptiSassData, name, CUpti_SassMetrics_Data, functionName);
SAME(CuptiSassData, values, CUpti_SassMetrics_Data, pInstanceValues);
SASS(Flush, instances, FlushData);
SAME(CuptiSassFlush, data, CUpti_SassMetricsFlushData_Params, pMetricsData);
VALUE(CUPTI_SASS_WHOLE_GPU, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU);

#define KERNEL(field, member) SAME(CuptiKernel, field, CUpti_ActivityKernel10, member)
KERNEL(kind, kind);
KERNEL(registers, registersPerThread);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(device, deviceId);
KERNEL(static_shared, staticSharedMemory);
KERNEL(dynamic_shared, dynamicSharedMemory);
KERNEL(local_bytes, localMemoryPerThread);
KERNEL(correlation, correlationId);
KERNEL(name, name);
KERNEL(graph_node, graphNodeId);
KERNEL(grid[0], gridX);
KERNEL(block[2], blockZ);
KERNEL(cluster[0], clusterX);
SAME(CuptiKernel, cluster[0], CUpti_ActivityKernel9, clusterX);

#define CALLBACK(field, member) SAME(CuptiCall, field, CUpti_CallbackData, member)
CALLBACK(site, callbackSite);
CALLBACK(params, functionParams);
CALLBACK(result, functionReturnValue);
CALLBACK(symbol, symbolName);
CALLBACK(context, context);
CALLBACK(correlation, correlationId);
SAME(CuLaunchConfig, attributes, CUlaunchConfig, attrs);
SAME(CuLaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
SAME(CuLaunchAttribute, value, CUlaunchAttribute, value);
// As src/inject/inject_counts.c takes them.
_Static_assert(offsetof(cuLaunchKernel_params, hStream) == offsetof(cuLaunchCooperativeKernel_params, hStream), "");
AT(cuLaunchKernel_params, gridDimX, 8);
AT(cuLaunchKernel_params, hStream, 40);
AT(cuLaunchKernelEx_params, f, 8);
AT(cuGraphLaunch_params, hStream, 8);

// As src/inject/graphs.c takes them.
#define EQUAL(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
EQUAL(GraphKernel, CUDA_KERNEL_NODE_PARAMS_v2);
SAME(GraphKernel, parameters, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME(GraphKernel, shared, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME(GraphKernel, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);
EQUAL(GraphSet, CUDA_MEMSET_NODE_PARAMS);
SAME(GraphSet, element, CUDA_MEMSET_NODE_PARAMS, elementSize);
SAME(GraphSet, width, CUDA_MEMSET_NODE_PARAMS, width);
EQUAL(GraphHost, CUDA_HOST_NODE_PARAMS);
EQUAL(GraphCopy, CUDA_MEMCPY3D);
EQUAL(GraphEdge, CUgraphEdgeData);
#define NODE(ours, theirs) VALUE(GRAPH_##ours, CU_GRAPH_NODE_TYPE_##theirs)
NODE(KERNEL, KERNEL);
NODE(COPY, MEMCPY);
NODE(SET, MEMSET);
NODE(HOST, HOST);
NODE(CHILD, GRAPH);
NODE(EMPTY, EMPTY);
NODE(WAIT, WAIT_EVENT);
NODE(RECORD, EVENT_RECORD);
NODE(ALLOCATE, MEM_ALLOC);
NODE(FREE, MEM_FREE);
NODE(CONDITIONAL, CONDITIONAL);
VALUE(GRAPH_DEVICE_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
#define ATTRIBUTE(ours, theirs) VALUE(ATTRIBUTE_##ours, CU_LAUNCH_ATTRIBUTE_##theirs)
ATTRIBUTE(CLUSTER_POLICY, CLUSTER_SCHEDULING_POLICY_PREFERENCE);
ATTRIBUTE(SYNC_DOMAIN_MAP, MEM_SYNC_DOMAIN_MAP);
ATTRIBUTE(SYNC_DOMAIN, MEM_SYNC_DOMAIN);
ATTRIBUTE(PREFERRED_CLUSTER, PREFERRED_CLUSTER_DIMENSION);
#define MADE(params, exec, of) AT(params, exec, 0); AT(params, of, 8)
MADE(cuGraphInstantiateWithFlags_params, phGraphExec, hGraph);
MADE(cuGraphInstantiateWithParams_params, phGraphExec, hGraph);
MADE(cuGraphInstantiate_v2_params, phGraphExec, hGraph);
MADE(cuGraphExecUpdate_params, hGraphExec, hGraph);
MADE(cuGraphExecUpdate_v2_params, hGraphExec, hGraph);
MADE(cuGraphExecKernelNodeSetParams_v2_params, hGraphExec, hNode);
MADE(cuGraphExecMemcpyNodeSetParams_params, hGraphExec, hNode);
MADE(cuGraphExecMemsetNodeSetParams_params, hGraphExec, hNode);
MADE(cuGraphExecHostNodeSetParams_params, hGraphExec, hNode);
MADE(cuGraphExecNodeSetParams_params, hGraphExec, hNode);
MADE(cuGraphNodeSetEnabled_params, hGraphExec, hNode);
AT(cuGraphExecDestroy_params, hGraphExec, 0);
AT(cuGraphInstantiateWithFlags_params, flags, 16);
AT(cuGraphInstantiateWithParams_params, instantiateParams, 16);
AT(CUDA_GRAPH_INSTANTIATE_PARAMS, flags, 0);
AT(cuGraphExecKernelNodeSetParams_v2_params, nodeParams, 16);
#define CALL(ours, name) VALUE(CUPTI_CALL_##ours, CUPTI_DRIVER_TRACE_CBID_##name)
CALL(GRAPH_MAKE, cuGraphInstantiate);
CALL(GRAPH_MAKE_2, cuGraphInstantiate_v2);
CALL(GRAPH_MAKE_WITH_FLAGS, cuGraphInstantiateWithFlags);
CALL(GRAPH_MAKE_WITH, cuGraphInstantiateWithParams);
CALL(GRAPH_MAKE_WITH_PTSZ, cuGraphInstantiateWithParams_ptsz);
CALL(GRAPH_DROP, cuGraphExecDestroy);
CALL(GRAPH_UPDATE, cuGraphExecUpdate);
CALL(GRAPH_UPDATE_2, cuGraphExecUpdate_v2);
CALL(GRAPH_SET_KERNEL, cuGraphExecKernelNodeSetParams);
CALL(GRAPH_SET_KERNEL_2, cuGraphExecKernelNodeSetParams_v2);
CALL(GRAPH_SET_COPY, cuGraphExecMemcpyNodeSetParams);
CALL(GRAPH_SET_SET, cuGraphExecMemsetNodeSetParams);
CALL(GRAPH_SET_HOST, cuGraphExecHostNodeSetParams);
CALL(GRAPH_SET_CHILD, cuGraphExecChildGraphNodeSetParams);
CALL(GRAPH_SET_RECORD, cuGraphExecEventRecordNodeSetEvent);
CALL(GRAPH_SET_WAIT, cuGraphExecEventWaitNodeSetEvent);
CALL(GRAPH_SET_SIGNAL, cuGraphExecExternalSemaphoresSignalNodeSetParams);
CALL(GRAPH_SET_SEMAPHORE, cuGraphExecExternalSemaphoresWaitNodeSetParams);
CALL(GRAPH_SET_ENABLED, cuGraphNodeSetEnabled);
CALL(GRAPH_SET_BATCH, cuGraphExecBatchMemOpNodeSetParams);
CALL(GRAPH_SET_ANY, cuGraphExecNodeSetParams);

VALUE(CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
VALUE(CUPTI_INVALID_METRIC_NAME, CUPTI_ERROR_INVALID_METRIC_NAME);
VALUE(CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
VALUE(CUPTI_VIRTUAL_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
VALUE(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
VALUE(CUPTI_NO_MORE_RECORDS, CUPTI_ERROR_MAX_LIMIT_REACHED);
VALUE(CUPTI_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
VALUE(CUPTI_PROFILER_TYPE_RANGE, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
VALUE(CUPTI_RANGE_AUTO, CUPTI_AutoRange);
VALUE(CUPTI_RANGE_USER, CUPTI_UserRange);
VALUE(CUPTI_REPLAY_KERNEL, CUPTI_KernelReplay);
VALUE(CUPTI_REPLAY_USER, CUPTI_UserReplay);
VALUE(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
VALUE(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
VALUE(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
VALUE(CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
VALUE(CUPTI_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
VALUE(CUPTI_RESOURCE_CONTEXT_DESTROY, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
VALUE(CUPTI_SITE_ENTER, CUPTI_API_ENTER);
CALL(LAUNCH, cuLaunchKernel);
CALL(LAUNCH_PTSZ, cuLaunchKernel_ptsz);
CALL(COOPERATIVE, cuLaunchCooperativeKernel);
CALL(COOPERATIVE_PTSZ, cuLaunchCooperativeKernel_ptsz);
CALL(GRAPH, cuGraphLaunch);
CALL(GRAPH_PTSZ, cuGraphLaunch_ptsz);
CALL(LAUNCH_EX, cuLaunchKernelEx);
CALL(LAUNCH_EX_PTSZ, cuLaunchKernelEx_ptsz);
C
flags=(-std=c17 -w -I"$scratch" -Isrc -Iinclude -isystem "$include")
"${CC:-cc}" "${flags[@]}" -fsyntax-only "$scratch/layout.c" || exit 1
libraries=$(scripts/cuda-env home)/lib64
[ -f "$libraries/libnvperf_host.so" ] || exit 0
"${CC:-cc}" "${flags[@]}" tests/profile/passes.c src/measure/cupti.c src/base/{error,format,heap_host,text}.c \
  -L"$libraries" -lnvperf_host -ldl -o "$scratch/passes" &&
  LD_LIBRARY_PATH=$libraries "$scratch/passes"
