// The memory page. Texts of users and models reach the document as text nodes alone; the policy of the page forbids markup.

const TEXTS = {
  en: {
    memory: "memory", user: "User", language: "Language", token: "Token or header", go: "Log in",
    login: "This server asks who you are. Give the token, or the whole Authorization header, that it takes.",
    blocks: "Blocks", facts: "Facts", memories: "Memories", search: "Search", documents: "Documents", threads: "Conversations",
    loading: "Loading…", nothing: "Nothing here yet.", empty: "empty", edit: "Edit", save: "Save", cancel: "Cancel",
    undo: "Undo", restore: "Restore", history: "History ({n})", text_of: "Text of {label}", fill: "{chars} of {limit} characters", chars: "{chars} characters",
    version: "version {version}", by_agent: "by the agent", by_person: "by a person", by_configuration: "as configured",
    saved: "Saved.", forgotten: "Forgotten.", fact: "Fact", value: "Value", since: "From", until: "Until", now: "now",
    sources: "Source messages ({n})", source_gone: "This message is no longer in the transcript.", seen: "said {n} times",
    variant: "also: {other}", superseded: "held until {until}", forget: "Forget", keep: "Keep",
    sure: "Forget this memory?", more: "More ({n} left)", total: "{n} memories", words: "Words", in: "In",
    in_memories: "memories", in_transcript: "conversations", in_documents: "documents", find: "Search", found_nothing: "Nothing was found.",
    left_out: "recall leaves it out: {why}", rank: "Rank", text: "Text", meaning: "Meaning: cosine, rank", keywords: "Words: share, rank", fused: "Together",
    shared: "for all users", files: "files: {n}", passages: "Passages ({n})", no_documents: "No documents yet: palimpsest docs add FILE",
    turns: "turns: {n}", open: "open", closed: "closed", back: "All conversations", summary: "Running summary",
    replaced: "Messages that it replaced ({n})", on_page: "Messages on the page ({n})", call: "calls",
    human: "You", ai: "Agent", tool: "Tool", system: "System", failed: "The server answered {status}.", offline: "The server does not answer.",
    "not changed meanwhile": "It was changed meanwhile. Save again to replace what it says now.", says_now: "What it says now",
  },
  zh: {
    memory: "记忆", user: "用户", language: "语言", token: "令牌或请求头", go: "登录",
    login: "这台服务器要求登录。请填写它接受的令牌，或完整的 Authorization 请求头。",
    blocks: "核心记忆", facts: "事实", memories: "记忆", search: "查找", documents: "文档", threads: "对话",
    loading: "正在读取……", nothing: "这里还没有内容。", empty: "空", edit: "编辑", save: "保存", cancel: "取消",
    undo: "撤销", restore: "恢复", history: "历史（{n}）", text_of: "{label} 的内容", fill: "已用 {chars} / {limit} 个字符", chars: "{chars} 个字符",
    version: "第 {version} 版", by_agent: "由智能体修改", by_person: "由人修改", by_configuration: "初始设置",
    saved: "已保存。", forgotten: "已忘记。", fact: "事实", value: "值", since: "自", until: "至", now: "现在",
    sources: "来源消息（{n}）", source_gone: "这条消息已不在档案里。", seen: "说过 {n} 次",
    variant: "也说成：{other}", superseded: "有效至 {until}", forget: "忘记", keep: "保留",
    sure: "要忘记这条记忆吗？", more: "更多（还有 {n} 条）", total: "共 {n} 条记忆", words: "查找内容", in: "范围",
    in_memories: "记忆", in_transcript: "对话", in_documents: "文档", find: "查找", found_nothing: "没有找到。",
    left_out: "回忆时略去：{why}", rank: "名次", text: "内容", meaning: "语义：余弦、名次", keywords: "词语：占比、名次", fused: "合计",
    shared: "所有用户共用", files: "{n} 个文件", passages: "各段（{n}）", no_documents: "还没有文档：palimpsest docs add FILE",
    turns: "{n} 轮", open: "进行中", closed: "已结束", back: "所有对话", summary: "滚动摘要",
    replaced: "被它替换的消息（{n}）", on_page: "页面上的消息（{n}）", call: "调用",
    human: "你", ai: "智能体", tool: "工具", system: "系统", failed: "服务器返回 {status}。", offline: "服务器没有应答。",
    "not changed meanwhile": "它刚才被修改过。再次保存就会替换现在的内容。", says_now: "现在的内容",
    "room left": "内容超出了这一块的字符上限。",
  },
};
const WHY = [
  [/^under the threshold of ([-\d.]+)$/, "低于阈值 $1"], [/^under (\d+%) of the best, ([-\d.]+)$/, "不到最佳结果的 $1（$2）"],
  [/^no room in (\d+) tokens \(recall_tokens\)$/, "$1 个 token 放不下"], [/^says the same as (\S+)$/, "与 $1 意思相同"],
  [/^beyond (\d+)$/, "排在前 $1 条之后"], [/^superseded on (\S+) by (\S+)$/, "$1 起被 $2 取代"],
];
const TABS = ["blocks", "facts", "memories", "search", "documents", "threads"];
const $ = (id) => document.getElementById(id);
const stored = (name) => sessionStorage.getItem(name) ?? "";

let language = localStorage.getItem("language") ?? (navigator.languages.find((one) => /^(zh|en)/.test(one)) ?? "en").slice(0, 2);
let current = "blocks";
let thread = null;
const asked = { search: { query: "", kind: "memories" }, documents: { query: "", kind: "documents" } };
let turn = 0;

const t = (key, values = {}) => (TEXTS[language][key] ?? TEXTS.en[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name]);
const day = (at) => (at ? new Date(at).toLocaleString(language, { dateStyle: "medium", timeStyle: "short" }) : "");

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter(Boolean)); // a text becomes a text node
  return node;
}

const said = (text) => (text ? el("p", { class: "said", dir: "auto" }, text) : el("p", { class: "meta" }, t("empty")));
const meta = (...parts) => el("span", { class: "meta" }, parts.filter(Boolean).join(" · "));
const button = (text, act, attributes = {}) => el("button", { type: "button", onclick: act, ...attributes }, text);

function tell(text, failed = false) {
  $("status").textContent = text;
  $("status").className = failed ? "failed" : "";
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => ($("status").textContent = ""), failed ? 12000 : 4000);
}

async function call(name, given = {}, method = "GET") {
  const url = new URL(`memory/api/${name}`, location.href);
  const headers = { ...(stored("authorization") && { authorization: stored("authorization") }) };
  const body = method === "POST" ? JSON.stringify(given) : null;
  if (stored("user")) url.searchParams.set("user", stored("user"));
  if (body === null) for (const [key, value] of Object.entries(given)) url.searchParams.set(key, value);
  else Object.assign(headers, { "content-type": "application/json", "x-palimpsest-token": (await call("session")).token });
  let response;
  try {
    response = await fetch(url, { method, headers, body });
  } catch {
    throw new Error(t("offline"));
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const needsLogin = response.status === 401 || (response.status === 403 && "detail" in answer);
  const isLate = (headers.authorization ?? null) !== (stored("authorization") || null);  // asked before the last login
  if (!isLate) $("login").hidden = !needsLogin;
  throw new Error(needsLogin ? t("login") : TEXTS[language][answer.gate] ?? answer.error ?? t("failed", { status: response.status }));
}

async function act(name, given, done, focus) {
  try {
    await call(name, given, "POST");
    tell(t(done));
  } catch (error) {
    tell(error.message, true);
  }
  await show(current);
  ($(focus) ?? $("panel")).focus();
}

const VIEWS = {
  async blocks() {
    return (await call("blocks")).map(block);
  },
  async facts() {
    const groups = (await call("facts")).map(({ key, values }) => el("tbody", {}, ...values.map((one, n) => el("tr", { class: one.until && "past" },
      n === 0 && el("th", { scope: "rowgroup", rowspan: values.length, dir: "auto" }, key),
      el("td", { dir: "auto" }, said(one.value), sources(one.thread ? [{ thread: one.thread, message: one.message }] : [])),
      el("td", { class: "number", "data-head": t("since") }, day(one.since)),
      el("td", { class: "number", "data-head": t("until") }, one.until ? day(one.until) : t("now"))))));
    return groups.length ? [table(["fact", "value", "since", "until"], groups)] : [];
  },
  async memories(offset = 0) {
    const { total, items } = await call("memories", { offset });
    const left = total - offset - items.length;
    const more = left > 0 && button(t("more", { n: left }), async () => more.replaceWith(...(await VIEWS.memories(offset + items.length))));
    return [offset === 0 && total > 0 && el("p", { class: "meta" }, t("total", { n: total })), ...items.map(memory), more].filter(Boolean);
  },
  search: () => lookup(asked.search, ["memories", "transcript"]),
  async documents() {
    const collections = await call("documents");
    if (!collections.length) return [el("p", {}, t("no_documents"))];
    return [...(await lookup(asked.documents, ["documents"])), ...collections.map((one) => el("article", { class: "card" },
      el("div", { class: "row" }, el("h2", { dir: "auto" }, one.name), meta(one.shared && t("shared"), t("files", { n: one.files.length }))),
      ...one.files.map((file) => document_of(file, one))))];
  },
  async threads() {
    if (thread) return conversation(thread, await call("thread", { id: thread.id }));
    return (await call("threads")).map((one) => el("article", { class: "card" },
      button(one.title || one.id, () => { thread = one; show("threads"); }, { class: "open", dir: "auto" }),
      one.abstract && said(one.abstract),
      el("p", {}, meta(day(one.used), t("turns", { n: one.turns }), t(one.is_open ? "open" : "closed")))));
  },
};

async function lookup(last, kinds) {
  const words = el("input", { id: "search-words", type: "search", required: true, value: last.query, dir: "auto" });
  const kind = el("select", {}, ...kinds.map((one) => el("option", { value: one, selected: one === last.kind }, t(`in_${one}`))));
  const results = el("div", { "aria-live": "polite" });
  const look = async (event) => {
    event?.preventDefault();
    Object.assign(last, { query: words.value, kind: kind.value });
    if (!last.query.trim()) return;
    try {
      results.replaceChildren(...hits(await call("search", last)));
    } catch (error) {
      tell(error.message, true);
    }
  };
  await look();
  return [el("form", { class: "row card", role: "search", onsubmit: look },
    el("label", { for: "search-words" }, t("words")), words, kinds.length > 1 && el("label", {}, t("in"), " ", kind), el("button", { class: "main" }, t("find"))), results];
}

function document_of(file, { name, shared }) {
  const list = el("div", {}, t("loading"));
  const load = async (offset = 0) => {
    const { total, items } = await call("passages", { collection: name, shared, source: file.source, offset });
    const left = total - offset - items.length;
    const more = left > 0 && button(t("more", { n: left }), async () => more.replaceWith(...(await load(offset + items.length))));
    return [...items.map((one) => el("div", { class: "message" }, place(one.place), said(one.text))), more].filter(Boolean);
  };
  const open = async () => list.replaceChildren(...(await load().catch((error) => [el("p", {}, error.message)])));
  return el("section", {}, el("h3", { dir: "auto" }, file.name), meta(file.title !== file.name && file.title, bytes(file.size), day(file.at)),
    el("details", { ontoggle: (event) => event.target.open && open() }, el("summary", {}, t("passages", { n: file.passages })), list));
}

const place = (parts) => el("p", { class: "meta", dir: "auto" }, parts.join(" › "));
const bytes = (size) => size > 0 && new Intl.NumberFormat(language, { style: "unit", unit: size < 1000 ? "byte" : "kilobyte", maximumSignificantDigits: 3 }).format(size < 1000 ? size : size / 1000);

function table(heads, groups) {
  const head = el("thead", {}, el("tr", {}, ...heads.map((one) => el("th", { scope: "col" }, t(one)))));
  return el("div", { class: "wide" }, el("table", {}, head, ...groups));
}

function block(one) {
  const text = said(one.text);
  const n = one.label;
  const open = button(t("edit"), () => edit(one, card), { id: `edit-${n}`, "aria-label": `${t("edit")}: ${n}` });
  const undo = button(t("undo"), () => back(one, one.version - 1), { disabled: one.version === 0, "aria-label": `${t("undo")}: ${n}` });
  const fill = filled(one);
  const card = el("article", { class: "card" },
    el("div", { class: "row" }, el("h2", { dir: "auto" }, n), el("span", { class: "about", dir: "auto" }, one.description), el("span", { class: "end row" }, open, undo)),
    one.limit > 0 && el("meter", { min: 0, max: one.limit, high: one.limit * 0.9, value: one.chars, "aria-label": fill }), meta(fill, version(one)), text,
    one.version > 0 && el("details", {}, el("summary", {}, t("history", { n: one.version })), ...one.history.slice(1).map((past) => el("div", { class: "card" },
      el("div", { class: "row" }, meta(version(past)), button(t("restore"), () => back(one, past.version), { "aria-label": `${t("restore")}: ${n}, ${t("version", past)}` })), said(past.text)))));
  return card;
}

const filled = (one) => t(one.limit ? "fill" : "chars", one);
const version = (one) => [t("version", one), day(one.at), t(`by_${one.by}`)].filter(Boolean).join(" · ");
const back = (one, to) => act("undo", { label: one.label, version: to, seen: one.version }, "saved", `edit-${one.label}`);

function edit(one, card) {
  let seen = one.version;
  const count = () => (counter.textContent = filled({ chars: [...box.value].length, limit: one.limit }));
  const save = async (event) => {
    event.preventDefault();
    try {
      await call("edit", { label: one.label, text: box.value, seen }, "POST");
    } catch (error) { // what was typed stays
      tell(error.message, true);
      const fresh = (await call("blocks").catch(() => [])).find((other) => other.label === one.label);
      if (!fresh || fresh.version === seen) return;
      seen = fresh.version;
      return meanwhile.replaceChildren(el("h3", {}, t("says_now")), said(fresh.text));
    }
    tell(t("saved"));
    await show("blocks");
    $(`edit-${one.label}`).focus();
  };
  const box = el("textarea", { dir: "auto", "aria-label": t("text_of", one), oninput: () => count() });
  const counter = el("span", { class: "meta" });
  const meanwhile = el("div", {});
  const form = el("form", { class: "card", onsubmit: save }, el("h2", { dir: "auto" }, one.label), box,
    el("p", { class: "row" }, el("button", { class: "main" }, t("save")), button(t("cancel"), () => { form.replaceWith(card); $(`edit-${one.label}`).focus(); }), counter), meanwhile);
  box.value = one.text;
  card.replaceWith(form);
  count();
  box.focus();
}

function memory(one) {
  return el("article", { class: `card ${one.until ? "past" : ""}` }, said(one.text), ...one.variants.map((other) => el("p", { class: "meta", dir: "auto" }, t("variant", { other }))),
    el("div", { class: "row" }, meta(day(one.at), one.about, one.seen > 1 && t("seen", { n: one.seen }), one.until && t("superseded", { until: day(one.until) })),
      button(t("forget"), () => forget(one), { class: "danger end", "aria-label": `${t("forget")}: ${one.text}` })),
    sources(one.sources));
}

function sources(places) {
  const list = el("div", {}, t("loading"));
  const load = async () => {
    const found = await Promise.all(places.map((place) => call("said", place))).catch((error) => (tell(error.message, true), []));
    list.replaceChildren(...found.flatMap((entries) => (entries.length ? entries.map(message) : [el("p", { class: "meta" }, t("source_gone"))])));
  };
  return places.length > 0 && el("details", { ontoggle: (event) => event.target.open && load() }, el("summary", {}, t("sources", { n: places.length })), list);
}

function forget(one) {
  $("doomed").textContent = one.text;
  $("sure").returnValue = "no";
  $("sure").onclose = () => $("sure").returnValue === "yes" && act("forget", { id: one.id }, "forgotten", "panel");
  $("sure").showModal();
}

const why = (reason) => WHY.reduce((told, [english, chinese]) => (language === "zh" ? told.replace(english, chinese) : told), reason);
const score = (value, rank) => (rank === null || value === null ? "—" : `${value.toFixed(3)}, ${rank}`);

function hits(found) {
  if (!found.length) return [el("p", {}, t("found_nothing"))];
  return [table(["rank", "text", "meaning", "keywords", "fused"], found.map((one, n) => el("tbody", { class: one.left_out && "past" }, el("tr", {},
    el("td", { class: "number" }, String(n + 1)), el("td", { dir: "auto" }, one.in && place([...one.in, ...one.place]), said(one.text), one.left_out && el("p", { class: "meta" }, t("left_out", { why: why(one.left_out) }))),
    el("td", { class: "number", "data-head": t("meaning") }, score(one.vector, one.vector_rank)),
    el("td", { class: "number", "data-head": t("keywords") }, score(one.keyword, one.keyword_rank)),
    el("td", { class: "number", "data-head": t("fused") }, (one.fused ?? 0).toFixed(2))))))];
}

function conversation(one, { summary, entries }) {
  const [gone, there] = [entries.filter((entry) => !entry.on_page), entries.filter((entry) => entry.on_page)];
  const part = (key, list) => el("section", {}, el("h3", {}, t(key, { n: list.length })), ...list.map(message));
  return [el("p", { class: "row" }, button(t("back"), () => { thread = null; show("threads"); }), el("h2", { dir: "auto" }, one.title || one.id)),
    (summary || gone.length > 0) && el("div", { class: "beside" }, el("section", {}, el("h3", {}, t("summary")), ...lines(summary)), part("replaced", gone)),
    part("on_page", there)].filter(Boolean);
}

const lines = (text) => text.split("\n").map((line) => (line.startsWith("## ") ? el("h4", { dir: "auto" }, line.slice(3)) : said(line)));

function message(one) {
  const calls = one.calls.map((made) => el("p", {}, meta(t("call")), " ", el("code", { dir: "ltr" }, `${made.name} ${JSON.stringify(made.args)}`)));
  return el("div", { class: `message ${one.role}` }, meta(t(one.role), day(one.at)), (one.text || !calls.length) && said(one.text), ...calls);
}

async function show(tab) {
  const mine = ++turn;
  current = tab;
  for (const one of TABS) {
    $(one).setAttribute("aria-selected", one === tab);
    $(one).tabIndex = one === tab ? 0 : -1;
  }
  $("panel").setAttribute("aria-labelledby", tab);
  $("panel").inert = true; // what is clicked now is about to go
  const nodes = await VIEWS[tab]().catch((error) => (tell(error.message, true), [el("p", {}, error.message)]));
  if (mine !== turn) return; // another tab was asked for meanwhile
  $("panel").replaceChildren(...(nodes.length ? nodes : [el("p", {}, t("nothing"))]));
  $("panel").inert = false;
}

function speak(chosen) {
  language = chosen in TEXTS ? chosen : "en";
  document.documentElement.lang = $("language").value = language;
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
  document.title = `Palimpsest · ${t("memory")}`;
}

async function begin() {
  thread = null;
  $("panel").inert = true; // it may show another user's
  const session = await call("session").catch(() => ({ user: stored("user") }));
  $("user").value = session.user;
  $("user").readOnly = !session.free;
  await show(current);
}

for (const one of TABS) $(one).addEventListener("click", () => { thread = null; show(one); });
document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -TABS.length, End: TABS.length }[event.key];
  if (!step) return;
  event.preventDefault();
  const place = TABS.indexOf(current) + step;
  const next = Math.abs(step) > 1 ? (step > 0 ? TABS.length - 1 : 0) : (place + TABS.length) % TABS.length;
  $(TABS[next]).click();
  $(TABS[next]).focus();
});
$("language").addEventListener("change", () => { localStorage.setItem("language", $("language").value); speak($("language").value); show(current); });
$("whose").addEventListener("submit", (event) => { event.preventDefault(); sessionStorage.setItem("user", $("user").value.trim()); begin(); });
$("user").addEventListener("change", () => $("whose").requestSubmit());
$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = $("token").value.trim();
  sessionStorage.setItem("authorization", /\s/.test(given) ? given : `Bearer ${given}`);
  $("token").value = "";
  $("login").hidden = true;
  begin();
});
speak(language);
begin();
