"""An independent computation of the ranking, from the data in the store."""
TOPICS, HIDDEN, QUALITY_MIN, PER_AUTHOR = 8, 32, 10, 2
BONUS = {"followed": 9000, "similar": 4000, "trending": 0}


def numbers(text):
    return [int(word) for word in text.split()]


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


def score(taste, quality, age, topics, source):
    match = [a * b for a, b in zip(taste, topics)]
    total = BONUS[source] + 4 * sum(match) + 200 * quality - 50 * age
    for h in range(HIDDEN):
        summed = sum(((h * 7 + t * 13 + h * t) % 9 - 4) * match[t] for t in range(TOPICS))
        if summed > 0:
            total += (1 + h % 3) * summed // 16
    return total


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
        author, quality, age, *topics = numbers(store.call("GET", f"demo:item:{item}"))
        if quality < QUALITY_MIN:
            continue
        left_out += item in seen
        if item not in seen:
            scored.append({"item": item, "score": score(taste, quality, age, topics, source),
                           "author": author, "source": source})
    scored.sort(key=lambda one: (-one["score"], one["item"]))
    kept = []
    for one in scored:
        if sum(other["author"] == one["author"] for other in kept) < PER_AUTHOR:
            kept.append(one)
    return {"candidates": len(candidates), "seen": left_out, "items": kept[:top]}
