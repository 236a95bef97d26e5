"""An independent computation of the ranking, from the data in the store."""
BONUS = {"followed": 9000, "similar": 4000, "trending": 0}


def numbers(text):
    """Numbers of two digits each."""
    return [int(text[i:i + 2]) for i in range(0, len(text), 2)]


def merge(sources, most):
    """Take items from the sources in turn, each item once: [(item, source)]."""
    left = {name: list(items) for name, items in sources.items()}
    taken, out, more = set(), [], True
    while more and len(out) < most:
        more = False
        for name, items in left.items():
            while items and items[0] in taken:
                items.pop(0)
            if items and len(out) < most:
                taken.add(items[0])
                out.append((items.pop(0), name))
                more = True
    return out


def score(taste, quality, topics, source):
    match = sum(a * b for a, b in zip(taste, topics))
    return BONUS[source] + 4 * match + 200 * quality


def feed(store, viewer, fan_out, top):
    """The expected reply of the service: candidates, seen, items."""
    profile = iter(store.call("HGETALL", f"demo:viewer:{viewer}"))
    profile = dict(zip(profile, profile))
    last = fan_out - 1
    ids = lambda *words: [int(word) for word in store.call(*words)]
    sources = {"followed": ids("LRANGE", f"demo:followed:{viewer}", 0, last),
               "similar": ids("LRANGE", f"demo:similar:{profile['cluster']}", 0, last),
               "trending": ids("ZREVRANGE", "demo:trending", 0, last)}
    candidates = merge(sources, fan_out)
    seen, taste = set(ids("SMEMBERS", f"demo:seen:{viewer}")), numbers(profile["taste"])
    scored, left_out = [], 0
    for item, source in candidates:
        quality, *topics = numbers(store.call("GET", f"demo:item:{item}"))
        left_out += item in seen
        if item not in seen:
            scored.append({"item": item, "score": score(taste, quality, topics, source),
                           "source": source})
    scored.sort(key=lambda one: (-one["score"], one["item"]))
    return {"candidates": len(candidates), "seen": left_out, "items": scored[:top]}
