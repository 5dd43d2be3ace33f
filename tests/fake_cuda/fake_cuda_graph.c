/* Graphs of the fake driver. Kernel nodes of conditional bodies are held by the executable like all others.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_cuda_internal.h"

cuda_result cuGraphCreate(cuda_graph_handle *graph, unsigned flags)
{
    ENTER();
    (void)flags;
    struct object *made = fake_make(KIND_GRAPH, NULL);
    made->nodes = calloc(MAX_NODES, sizeof(struct object *));
    *graph = (cuda_graph_handle)made;
    return 0;
}

static void unmake_graph(struct object *graph)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->body)
            unmake_graph(graph->nodes[i]->body);
        fake_unmake(graph->nodes[i]);
    }
    fake_unmake(graph);
}

cuda_result cuGraphDestroy(cuda_graph_handle graph)
{
    ENTER();
    struct object *object = fake_need(__func__, graph, KIND_GRAPH);
    if (object->parent)
        fake_wrong(__func__, "the graph is a conditional node's");
    unmake_graph(object);
    return 0;
}

static struct object *add_node(const char *caller, cuda_graph_handle graph, const cuda_node *dependencies,
                               size_t count)
{
    struct object *parent = fake_need(caller, graph, KIND_GRAPH), *made = fake_make(KIND_NODE, parent);
    for (size_t i = 0; i < count; i++) {
        if (fake_need(caller, dependencies[i], KIND_NODE)->parent != parent)
            fake_wrong(caller, "a dependency is a node of another graph");
        for (size_t k = 0; k < i; k++)
            if (dependencies[k] == dependencies[i])
                fake_wrong(caller, "a dependency is stated twice");
    }
    made->count = (uint32_t)count;
    if (parent->count == MAX_NODES)
        fake_wrong(caller, "more nodes than the fake driver holds");
    parent->nodes[parent->count++] = made;
    return made;
}

cuda_result cuGraphConditionalHandleCreate(uint64_t *handle, cuda_graph_handle graph, cuda_context context,
                                           unsigned value, unsigned flags)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *object = fake_need(__func__, graph, KIND_GRAPH);
    fake_need(__func__, context, KIND_CONTEXT);
    if (object->parent || value || flags)
        fake_wrong(__func__, "a handle of a body, or with a default value");
    *handle = ++object->handles;
    return 0;
}

cuda_result cuGraphAddNode_v2(cuda_node *node, cuda_graph_handle graph, const cuda_node *dependencies,
                              const void *edges, size_t count, struct cuda_conditional_node *parameters)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *root = fake_need(__func__, graph, KIND_GRAPH),
                  *made = add_node(__func__, graph, dependencies, count);
    fake_need(__func__, parameters->context, KIND_CONTEXT);
    while (root->parent)
        root = root->parent->parent;
    if (edges || parameters->type != CUDA_NODE_CONDITIONAL || parameters->size != 1 || !parameters->handle ||
        parameters->handle > root->handles ||
        (parameters->kind != CUDA_CONDITION_IF && parameters->kind != CUDA_CONDITION_WHILE))
        fake_wrong(__func__, "no conditional node, or a handle of another graph");
    made->body = fake_make(KIND_GRAPH, made);
    made->body->nodes = calloc(MAX_NODES, sizeof(struct object *));
    parameters->graphs = (cuda_graph_handle *)(void *)&made->body;
    *node = (cuda_node)made;
    return 0;
}

cuda_result cuGraphAddKernelNode(cuda_node *node, cuda_graph_handle graph, const cuda_node *dependencies,
                                 size_t count, const struct cuda_kernel_node *parameters)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *made = add_node(__func__, graph, dependencies, count);
    fake_set_launch(__func__, &made->launch, parameters);
    *node = (cuda_node)made;
    return 0;
}

/* The kernel nodes of the graph and of all bodies in it. */
static void collect(const char *caller, const struct object *graph, struct object *into)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->body) {
            collect(caller, graph->nodes[i]->body, into);
            continue;
        }
        if (into->count == MAX_NODES)
            fake_wrong(caller, "more nodes than the fake driver holds");
        into->nodes[into->count++] = graph->nodes[i];
    }
}

cuda_result cuGraphInstantiateWithFlags(cuda_executable *executable, cuda_graph_handle graph,
                                        unsigned long long flags)
{
    NEEDS_CONTEXT();
    ENTER();
    (void)flags;
    struct object *from = fake_need(__func__, graph, KIND_GRAPH), *made = fake_make(KIND_EXECUTABLE, from);
    made->nodes = calloc(MAX_NODES, sizeof(struct object *));
    collect(__func__, from, made);
    made->launches = calloc(made->count + 1, sizeof *made->launches);
    made->disabled = calloc(made->count + 1, sizeof *made->disabled);
    for (uint32_t i = 0; i < made->count; i++)
        made->launches[i] = made->nodes[i]->launch;
    *executable = (cuda_executable)made;
    return 0;
}

static uint32_t node_index(const char *caller, const struct object *executable, cuda_node node)
{
    struct object *wanted = fake_need(caller, node, KIND_NODE);
    fake_need(caller, executable->parent, KIND_GRAPH);
    for (uint32_t i = 0; i < executable->count; i++)
        if (executable->nodes[i] == wanted)
            return i;
    fake_wrong(caller, "the node belongs to another graph");
    return 0;
}

cuda_result cuGraphExecKernelNodeSetParams(cuda_executable executable, cuda_node node,
                                           const struct cuda_kernel_node *parameters)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *object = fake_need(__func__, executable, KIND_EXECUTABLE);
    fake_set_launch(__func__, &object->launches[node_index(__func__, object, node)], parameters);
    return 0;
}

cuda_result cuGraphNodeSetEnabled(cuda_executable executable, cuda_node node, unsigned enabled)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *object = fake_need(__func__, executable, KIND_EXECUTABLE);
    object->disabled[node_index(__func__, object, node)] = !enabled;
    return 0;
}

cuda_result cuGraphUpload(cuda_executable executable, cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    fake_need(__func__, executable, KIND_EXECUTABLE);
    fake_need(__func__, stream, KIND_STREAM);
    return 0;
}

cuda_result cuGraphLaunch(cuda_executable executable, cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *object = fake_need(__func__, executable, KIND_EXECUTABLE);
    if (stream && fake_need(__func__, stream, KIND_STREAM)->capturing)
        fake_wrong(__func__, "a graph whose parameters are patched is captured");
    for (uint32_t i = 0; i < object->count; i++)
        if (!object->disabled[i])
            fake_record(&object->launches[i], 1);
    return 0;
}

cuda_result cuGraphExecDestroy(cuda_executable executable)
{
    ENTER();
    fake_unmake(fake_need(__func__, executable, KIND_EXECUTABLE));
    return 0;
}
