#!/usr/bin/env bash
# What src/measure/cupti.h declares of CUPTI's ABI is what CUPTI's own headers say, where they are to be had.
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

WHOLE(CuptiInitialize, priv, CUpti_Profiler_Initialize_Params);
WHOLE(CuptiChipName, name, CUpti_Device_GetChipName_Params);
WHOLE(CuptiAvailability, image, CUpti_Profiler_GetCounterAvailability_Params);
SAME(CuptiAvailability, image_size, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize);
WHOLE(CuptiHostInitialize, host, CUpti_Profiler_Host_Initialize_Params);
SAME(CuptiHostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
WHOLE(CuptiHostDeinitialize, host, CUpti_Profiler_Host_Deinitialize_Params);
WHOLE(CuptiHostProperties, type, CUpti_Profiler_Host_GetMetricProperties_Params);
SAME(CuptiHostProperties, metric, CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName);
WHOLE(CuptiHostAdd, count, CUpti_Profiler_Host_ConfigAddMetrics_Params);
WHOLE(CuptiHostImageSize, image_size, CUpti_Profiler_Host_GetConfigImageSize_Params);
WHOLE(CuptiHostImage, image, CUpti_Profiler_Host_GetConfigImage_Params);
WHOLE(CuptiHostPasses, passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
WHOLE(CuptiHostEvaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME(CuptiHostEvaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME(CuptiHostEvaluate, metrics, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
WHOLE(CuptiRangeEnable, profiler, CUpti_RangeProfiler_Enable_Params);
SAME(CuptiRangeEnable, context, CUpti_RangeProfiler_Enable_Params, ctx);
WHOLE(CuptiRange, profiler, CUpti_RangeProfiler_Disable_Params);
WHOLE(CuptiRange, profiler, CUpti_RangeProfiler_Start_Params);
WHOLE(CuptiRange, profiler, CUpti_RangeProfiler_PopRange_Params);
WHOLE(CuptiRangePush, name, CUpti_RangeProfiler_PushRange_Params);
WHOLE(CuptiRangeStop, all_passes, CUpti_RangeProfiler_Stop_Params);
WHOLE(CuptiRangeDecode, dropped, CUpti_RangeProfiler_DecodeData_Params);
WHOLE(CuptiRangeConfig, nesting_target, CUpti_RangeProfiler_SetConfig_Params);
SAME(CuptiRangeConfig, image, CUpti_RangeProfiler_SetConfig_Params, pConfig);
SAME(CuptiRangeConfig, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME(CuptiRangeConfig, range, CUpti_RangeProfiler_SetConfig_Params, range);
SAME(CuptiRangeConfig, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME(CuptiRangeConfig, most_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SAME(CuptiRangeConfig, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
SAME(CuptiRangeConfig, nesting_least, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
SAME(CuptiRangeConfig, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
WHOLE(CuptiRangeDataSize, data_size, CUpti_RangeProfiler_GetCounterDataSize_Params);
SAME(CuptiRangeDataSize, metrics, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
SAME(CuptiRangeDataSize, most_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
WHOLE(CuptiRangeDataInit, data, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
WHOLE(CuptiRangeDataInfo, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params);

WHOLE(CuptiSassProperties, metric, CUpti_SassMetrics_GetProperties_Params);
SAME(CuptiSassProperties, name, CUpti_SassMetrics_GetProperties_Params, pMetricName);
SAME(CuptiSassMetric, id, CUpti_SassMetrics_MetricDetails, metricId);
SAME(CuptiSassConfig, granularity, CUpti_SassMetrics_Config, outputGranularity);
WHOLE(CuptiSassSetConfig, device, CUpti_SassMetricsSetConfig_Params);
SAME(CuptiSassSetConfig, config, CUpti_SassMetricsSetConfig_Params, pConfigs);
WHOLE(CuptiSassUnsetConfig, device, CUpti_SassMetricsUnsetConfig_Params);
WHOLE(CuptiSassEnable, lazily, CUpti_SassMetricsEnable_Params);
WHOLE(CuptiSassDisable, dropped, CUpti_SassMetricsDisable_Params);
WHOLE(CuptiSassDataSize, instances, CUpti_SassMetricsGetDataProperties_Params);
SAME(CuptiSassValue, value, CUpti_SassMetrics_InstanceValue, value);
SAME(CuptiSassData, name, CUpti_SassMetrics_Data, functionName);
SAME(CuptiSassData, values, CUpti_SassMetrics_Data, pInstanceValues);
WHOLE(CuptiSassFlush, instances, CUpti_SassMetricsFlushData_Params);
SAME(CuptiSassFlush, data, CUpti_SassMetricsFlushData_Params, pMetricsData);
VALUE(CUPTI_SASS_WHOLE_GPU, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU);

SAME(CuptiKernel, kind, CUpti_ActivityKernel10, kind);
SAME(CuptiKernel, registers, CUpti_ActivityKernel10, registersPerThread);
SAME(CuptiKernel, start, CUpti_ActivityKernel10, start);
SAME(CuptiKernel, end, CUpti_ActivityKernel10, end);
SAME(CuptiKernel, device, CUpti_ActivityKernel10, deviceId);
SAME(CuptiKernel, static_shared, CUpti_ActivityKernel10, staticSharedMemory);
SAME(CuptiKernel, dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME(CuptiKernel, local_bytes, CUpti_ActivityKernel10, localMemoryPerThread);
SAME(CuptiKernel, correlation, CUpti_ActivityKernel10, correlationId);
SAME(CuptiKernel, name, CUpti_ActivityKernel10, name);
SAME(CuptiKernel, graph_node, CUpti_ActivityKernel10, graphNodeId);
_Static_assert(offsetof(CuptiKernel, grid) == offsetof(CUpti_ActivityKernel10, gridX), "grid");
_Static_assert(offsetof(CuptiKernel, block) == offsetof(CUpti_ActivityKernel10, blockX), "block");
_Static_assert(offsetof(CuptiKernel, cluster) == offsetof(CUpti_ActivityKernel10, clusterX), "cluster");
_Static_assert(offsetof(CuptiKernel, cluster) == offsetof(CUpti_ActivityKernel9, clusterX), "cluster of 9");

SAME(CuptiCall, site, CUpti_CallbackData, callbackSite);
SAME(CuptiCall, params, CUpti_CallbackData, functionParams);
SAME(CuptiCall, result, CUpti_CallbackData, functionReturnValue);
SAME(CuptiCall, symbol, CUpti_CallbackData, symbolName);
SAME(CuptiCall, context, CUpti_CallbackData, context);
SAME(CuptiCall, correlation, CUpti_CallbackData, correlationId);
SAME(CuLaunchConfig, attributes, CUlaunchConfig, attrs);
SAME(CuLaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
SAME(CuLaunchAttribute, value, CUlaunchAttribute, value);
// As src/inject/counts.c takes them.
_Static_assert(offsetof(cuLaunchKernel_params, hStream) == offsetof(cuLaunchCooperativeKernel_params, hStream), "");
_Static_assert(offsetof(cuLaunchKernel_params, gridDimX) == 8 && offsetof(cuLaunchKernel_params, hStream) == 40, "");
_Static_assert(offsetof(cuLaunchKernelEx_params, f) == 8 && offsetof(cuGraphLaunch_params, hStream) == 8, "");

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
VALUE(GRAPH_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
VALUE(GRAPH_COPY, CU_GRAPH_NODE_TYPE_MEMCPY);
VALUE(GRAPH_SET, CU_GRAPH_NODE_TYPE_MEMSET);
VALUE(GRAPH_HOST, CU_GRAPH_NODE_TYPE_HOST);
VALUE(GRAPH_CHILD, CU_GRAPH_NODE_TYPE_GRAPH);
VALUE(GRAPH_EMPTY, CU_GRAPH_NODE_TYPE_EMPTY);
VALUE(GRAPH_WAIT, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
VALUE(GRAPH_RECORD, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
VALUE(GRAPH_ALLOCATE, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
VALUE(GRAPH_FREE, CU_GRAPH_NODE_TYPE_MEM_FREE);
VALUE(GRAPH_CONDITIONAL, CU_GRAPH_NODE_TYPE_CONDITIONAL);
VALUE(GRAPH_DEVICE_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
VALUE(ATTRIBUTE_CLUSTER_POLICY, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
VALUE(ATTRIBUTE_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
VALUE(ATTRIBUTE_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
VALUE(ATTRIBUTE_PREFERRED_CLUSTER, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
#define MADE(params, exec, of) \
  _Static_assert(offsetof(params, exec) == 0 && offsetof(params, of) == 8, #params)
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
_Static_assert(offsetof(cuGraphExecDestroy_params, hGraphExec) == 0, "");
_Static_assert(offsetof(cuGraphInstantiateWithFlags_params, flags) == 16, "");
_Static_assert(offsetof(cuGraphInstantiateWithParams_params, instantiateParams) == 16, "");
_Static_assert(offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, flags) == 0, "");
_Static_assert(offsetof(cuGraphExecKernelNodeSetParams_v2_params, nodeParams) == 16, "");
VALUE(CUPTI_CALL_GRAPH_MAKE, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate);
VALUE(CUPTI_CALL_GRAPH_MAKE_2, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2);
VALUE(CUPTI_CALL_GRAPH_MAKE_WITH_FLAGS, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags);
VALUE(CUPTI_CALL_GRAPH_MAKE_WITH, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams);
VALUE(CUPTI_CALL_GRAPH_MAKE_WITH_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz);
VALUE(CUPTI_CALL_GRAPH_DROP, CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy);
VALUE(CUPTI_CALL_GRAPH_UPDATE, CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate);
VALUE(CUPTI_CALL_GRAPH_UPDATE_2, CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2);
VALUE(CUPTI_CALL_GRAPH_SET_KERNEL, CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_KERNEL_2, CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2);
VALUE(CUPTI_CALL_GRAPH_SET_COPY, CUPTI_DRIVER_TRACE_CBID_cuGraphExecMemcpyNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_SET, CUPTI_DRIVER_TRACE_CBID_cuGraphExecMemsetNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_HOST, CUPTI_DRIVER_TRACE_CBID_cuGraphExecHostNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_CHILD, CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_RECORD, CUPTI_DRIVER_TRACE_CBID_cuGraphExecEventRecordNodeSetEvent);
VALUE(CUPTI_CALL_GRAPH_SET_WAIT, CUPTI_DRIVER_TRACE_CBID_cuGraphExecEventWaitNodeSetEvent);
VALUE(CUPTI_CALL_GRAPH_SET_SIGNAL, CUPTI_DRIVER_TRACE_CBID_cuGraphExecExternalSemaphoresSignalNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_SEMAPHORE, CUPTI_DRIVER_TRACE_CBID_cuGraphExecExternalSemaphoresWaitNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_ENABLED, CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled);
VALUE(CUPTI_CALL_GRAPH_SET_BATCH, CUPTI_DRIVER_TRACE_CBID_cuGraphExecBatchMemOpNodeSetParams);
VALUE(CUPTI_CALL_GRAPH_SET_ANY, CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams);

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
VALUE(CUPTI_CALL_LAUNCH, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
VALUE(CUPTI_CALL_LAUNCH_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
VALUE(CUPTI_CALL_COOPERATIVE, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel);
VALUE(CUPTI_CALL_COOPERATIVE_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz);
VALUE(CUPTI_CALL_GRAPH, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
VALUE(CUPTI_CALL_GRAPH_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz);
VALUE(CUPTI_CALL_LAUNCH_EX, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
VALUE(CUPTI_CALL_LAUNCH_EX_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
C
"${CC:-cc}" -std=c17 -fsyntax-only -w -I"$scratch" -Isrc -Iinclude -isystem "$include" "$scratch/layout.c"
