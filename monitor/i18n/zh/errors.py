"""Chinese of messages that validators, the command line and its queries write in English. See `monitor.i18n.phrases`.

A row is a whole message or a clause of it, which end with `; `. The first template that matches counts.
"""

from __future__ import annotations

SEPARATOR = "；"  # between clauses
PHRASES: tuple[tuple[str, str], ...] = (
    # The command line
    ("Error: {rest}", "错误：{rest}"),
    ("No such option {option}. Did you mean {other}?", "没有选项 {option}，是不是 {other}？"),
    ("No such option {option}. (Did you mean one of: {choices}?)", "没有选项 {option}（是不是其中之一：{choices}？）"),
    ("No such option {option}. (Possible options: {choices})", "没有选项 {option}（可能是：{choices}）"),
    ("No such option {option}.", "没有选项 {option}。"),
    ("No such option: {option} Did you mean {other}?", "没有选项 {option}，是不是 {other}？"),
    ("No such option: {option} (Possible options: {others})", "没有选项 {option}（可能是：{others}）"),
    ("No such option: {option}", "没有选项 {option}"),
    ("No such command {name}. Did you mean {other}?", "没有命令 {name}。是不是 {other}？"),
    ("No such command {name}. (Did you mean one of: {others}?)", "没有命令 {name}。（是不是其中之一：{others}？）"),
    ("No such command {name}.", "没有命令 {name}。"),
    ("Missing argument {name}.", "缺少参数 {name}。"),
    ("Missing option {name}.", "缺少选项 {name}。"),
    ("Missing command.", "缺少命令。"),
    ("Option {option} requires an argument.", "选项 {option} 需要一个值。"),
    ("Option {option} does not take a value.", "选项 {option} 不带值。"),
    ("Got unexpected extra argument ({names})", "多余的参数（{names}）"),
    ("Got unexpected extra arguments ({names})", "多余的参数（{names}）"),
    ("Invalid value for {name}: {rest}", "{name} 的值无效：{rest}"),
    ("Invalid value: {rest}", "无效的值：{rest}"),
    ("{value} is not a valid integer range.", "{value} 不是整数。"),
    ("{value} is not a valid integer.", "{value} 不是整数。"),
    ("{value} is not a valid float range.", "{value} 不是数字。"),
    ("{value} is not a valid float.", "{value} 不是数字。"),
    ("{value} is not in the range {range}.", "{value} 不在范围 {range} 之内。"),
    ("File {path} does not exist.", "文件 {path} 不存在。"),
    ("Path {path} does not exist.", "路径 {path} 不存在。"),
    ("Directory {path} does not exist.", "目录 {path} 不存在。"),
    ("not the name of a Kubernetes object", "不是 Kubernetes 对象的名字"),
    ("Try {command} for help.", "帮助：{command}"),
    ("Usage: {usage}", "用法：{usage}"),
    # A job that may fit
    (
        "gpus is missing; write the number of GPUs of the job, for example {example}",
        "缺少 gpus；请写作业的 GPU 数，例如 {example}",
    ),
    ("gpus ({gpus}) is not a multiple of per_node ({each})", "gpus（{gpus}）不是 per_node（{each}）的倍数"),
    ("{name} is a number from {least} to {most}, not {value}", "{name} 是 {least} 到 {most} 的数字，不能是 {value}"),
    (
        "cpu is the cores of each pod, such as {example}, up to {most}, not {value}",
        "cpu 是每个 Pod 的核数，例如 {example}，最多 {most}，不能是 {value}",
    ),
    (
        "memory is that of each pod, such as {example}, up to {most}, not {value}",
        "memory 是每个 Pod 的内存，例如 {example}，最多 {most}，不能是 {value}",
    ),
    ("{name} is a taint such as {example}, not {value}", "{name} 是污点，例如 {example}，不能是 {value}"),
    ("{name} is a resource such as {example}, not {value}", "{name} 是资源名，例如 {example}，不能是 {value}"),
    ("{name} is a GPU model such as {example}, not {value}", "{name} 是 GPU 型号，例如 {example}，不能是 {value}"),
    ("{name} is the name of a {kind}, not {value}", "{name} 不是合法的名字：{value}"),
    # Values of settings
    ("{value} is not true or false", "{value} 不是 true 或 false"),
    ("{value} is not a whole number", "{value} 不是整数"),
    ("{value} is not a number of events in a time", "{value} 不是“多长时间内多少次”"),
    ("{value} is not a number from {least} to {most}", "{value} 不是 {least} 到 {most} 的数字"),
    ("{value} is not a number", "{value} 不是数字"),
    ("{value} is not text", "{value} 不是文本"),
    ("put it in quotes", "请加引号"),
    ("must not be empty", "不能为空"),
    ("is required and not given", "必填，但没有填写"),
    ("{value} is not a list", "{value} 不是列表"),
    ("write each entry on a line of its own that begins with '- '", "每项单独一行，以 '- ' 开头"),
    ("{value} where a mapping belongs", "{value} 的位置应该是若干“键: 值”"),
    ("write 'key: value' lines below it", "请在下面逐行写 'key: value'"),
    ("{value} where a policy belongs", "{value} 的位置应该是一条清理策略"),
    ("write 'kind: images' and its other lines below it", "请在下面写 'kind: images' 和其他设置"),
    ("{value} is not one of {choices}.", "{value} 不在可选值之中：{choices}。"),
    ("{value} is not one of {choices}", "{value} 不在可选值之中：{choices}"),
    ("{value} is too small", "{value} 太小"),
    ("{value} is too large", "{value} 太大"),
    ("{value} is too short", "{value} 太短"),
    ("it has to be more than {least}", "必须大于 {least}"),
    ("it has to be less than {most}", "必须小于 {most}"),
    ("the least is {least}", "最小为 {least}"),
    ("the most is {most}", "最大为 {most}"),
    ("{value} is not a duration", "{value} 不是时长"),
    ("{value} is not a size", "{value} 不是大小"),
    ("{value} is not a share", "{value} 不是百分比"),
    ("{value} is not a time of day", "{value} 不是一天中的时刻"),
    ("{value} are no hours", "{value} 不是时间段"),
    ("{value} is not a time zone: write one such as {choices}", "{value} 不是时区：请写 {choices} 这样的名字"),
    (
        "{value} is not a schedule: write minute, hour, day, month and day of the week, as in a crontab",
        "{value} 不是定时表达式：请像 crontab 那样写分、时、日、月、星期",
    ),
    ("{value} is not a schedule: {rest}", "{value} 不是定时表达式：{rest}"),
    ("{value} is not an absolute path", "{value} 不是绝对路径"),
    ("it has to begin with /", "必须以 / 开头"),
    ("{value} is not a plain path", "{value} 不是规范路径"),
    ("{value} is too wide to be a root of datasets", "{value} 范围太大，不能作为数据集根目录"),
    ("name the directory that holds them", "请写存放数据集的目录"),
    ("{value} belongs to the system and cannot be a root of datasets", "{value} 是系统目录，不能作为数据集根目录"),
    ("{value} belongs to the system", "{value} 是系统目录"),
    ("name the directory with the datasets, as /mnt/share", "请写数据集所在目录，例如 /mnt/share"),
    ("{value}: write it without . and .. and without / at its end", "{value}：不能含 . 或 ..，末尾不能有 /"),
    ("{inner} is inside {outer}", "{inner} 在 {outer} 里面"),
    ("name one of them", "只写其中一个"),
    ("{value} is not a pattern below the root", "{value} 不是根目录下的匹配模式"),
    ("{value} has no fixed depth", "{value} 的层数不固定"),
    ("write one * for each level", "每一层写一个 *"),
    (
        "{name}: {path} is not below a directory that is allowed; write {example} beside policies",
        "{name}：{path} 不在允许的目录之下；请在 policies 旁边写 {example}",
    ),
    ("{value} is not an address", "{value} 不是地址"),
    ("{value} is not a page's address", "{value} 不是网页地址"),
    ("{value} is not a service's address", "{value} 不是服务地址"),
    ("{value} is not a registry's address", "{value} 不是镜像仓库地址"),
    ("{value} is not the address of a Harbor", "{value} 不是 Harbor 地址"),
    ("{value} has no port", "{value} 没有端口"),
    ("write host:port, or http://host:port without TLS", "请写 host:port；不用 TLS 时写 http://host:port"),
    ("write host:port, for example {example}", "请写 host:port，例如 {example}"),
    ("write an address, or a network like {example}", "请写地址，或 {example} 这样的网段"),
    (
        "name the addresses of the proxy; a header from anywhere proves nothing",
        "请写代理的地址；来源不限的请求头不可信",
    ),
    ("{value} is not a selector", "{value} 不是选择器"),
    ("{value} names no user of a pod; {rest}", "{value} 不能表示 Pod 的用户；{rest}"),
    ("{value} is not the name of a label", "{value} 不是标签名"),
    ("{value} is not a matcher", "{value} 不是匹配条件"),
    (
        "write label=value, label!=value, label=~pattern or label!~pattern",
        "请写 label=value、label!=value、label=~pattern 或 label!~pattern",
    ),
    ("{name}: {value} is not a label's value", "{name}：{value} 不是标签值"),
    ("write text, or '~pattern'", "请写文本，或 '~pattern'"),
    ("{value} is no name of Kubernetes", "{value} 不是合法的 Kubernetes 名称"),
    ("write small letters, digits, - and .", "只能用小写字母、数字、- 和 ."),
    ("invalid pattern {value}: {reason}", "无效的正则表达式 {value}：{reason}"),
    (
        "patterns have the syntax of RE2, as in Alertmanager: without look-around and backreferences",
        "语法是 RE2，与 Alertmanager 相同：没有环视和反向引用",
    ),
    ("cannot read {path}: No such file or directory", "无法读取 {path}：文件不存在"),
    ("cannot read {path}: Permission denied", "无法读取 {path}：没有权限"),
    ("cannot read {path}: {reason}", "无法读取 {path}：{reason}"),
    ("the token is empty", "令牌为空"),
    (
        "a token has only letters, digits and ASCII signs, no spaces and no line breaks",
        "令牌只能含字母、数字和 ASCII 符号，不能有空格和换行",
    ),
    ("a token has at least {count} characters", "令牌至少 {count} 个字符"),
    ("{command} makes one", "可用 {command} 生成"),
    # Keys and names
    ("route {number} leads to {name}: {rest}", "第 {number} 条路由指向 {name}：{rest}"),
    ("{value}: unknown {kind}; did you mean {name}?", "没有 {value} 这个名字；是不是 {name}？"),
    ("{value}: unknown {kind}; there are {choices}", "没有 {value} 这个名字；可用的有 {choices}"),
    ("unknown {kind}; did you mean {name}?", "没有这个名字；是不是 {name}？"),
    ("unknown {kind}; there are {choices}", "没有这个名字；可用的有 {choices}"),
    ("unknown {kind}", "没有这个名字"),
    ("two receivers are called {name}", "有两个接收者都叫 {name}"),
    ("two services are called {name}", "有两个服务都叫 {name}"),
    ("two policies are called {name}", "有两条策略都叫 {name}"),
    ("give each its own name", "请分别命名"),
    ("duplicate key, already given in line {line}", "键重复，第 {line} 行已经写过"),
    ("{name} is given as a whole", "{name} 已经整体给出"),
    ("change it there", "请在那里修改"),
    # Settings that depend on each other
    ("give {one} or {other}, not both", "{one} 和 {other} 只能写一个"),
    ("give both cert_file and key_file, or neither", "cert_file 和 key_file 要么都写，要么都不写"),
    ("username and password_file go together; give both", "username 和 password_file 必须同时写"),
    ("{name} says nothing about a receiver of kind {kind}", "{kind} 类型的接收者不用 {name}"),
    ("{name} says nothing about a service of kind {kind}", "{kind} 类型的服务不用 {name}"),
    ("high and low say nothing about {kind}; give cron", "{kind} 不用 high 和 low；请写 cron"),
    (
        "low has to be below high: it is where a run stops, high is where it begins",
        "low 必须小于 high：到 high 开始清理，到 low 停止",
    ),
    (
        "high is given without low; say where a run stops, for example {example}",
        "写了 high 但没有 low；请写清理到哪里停止，例如 {example}",
    ),
    ("it would never run; give cron, for example {example}", "它永远不会执行；请写 cron，例如 {example}"),
    (
        "it would never run; give cron, or high and low, for example {example}",
        "它永远不会执行；请写 cron，或 high 和 low，例如 {example}",
    ),
    ("it would do nothing; leave retention or gc on", "它什么也不会做；retention 和 gc 至少保留一个"),
    ("no kind is given", "没有写 kind"),
    ("{value} is no kind of policy", "{value} 不是策略类型"),
    ("write kind: and one of {choices}", "请写 kind: 和其中之一：{choices}"),
    ("is empty", "为空"),
    ("say what the exception is for, for example {example}", "请写明这个例外针对什么，例如 {example}"),
    ("is enabled without a key; write {example}", "启用了但没有密钥；请写 {example}"),
    (
        "agents no longer accept a shared token; create keys with gpuwarden keys, and write {example}",
        "agent 不再接受共享令牌；请用 gpuwarden keys 生成密钥，再写 {example}",
    ),
    (
        "timezone is {value}, but daemon.timezone is {other}; write daemon.timezone only",
        "timezone 是 {value}，而 daemon.timezone 是 {other}；只写 daemon.timezone",
    ),
    (
        "was removed: the daemon polls the agents itself, also in large clusters; delete this section",
        "已经移除：daemon 自己轮询 agent，大集群也一样；请删除这一节",
    ),
    (
        "a lease is for at least {least}: it has to be renewed several times before it runs out",
        "lease 至少 {least}：到期之前要续约几次",
    ),
    (
        "a lease is kept in Kubernetes; set daemon.kubernetes.enabled to yes, or remove the lease",
        "lease 保存在 Kubernetes 中；请把 daemon.kubernetes.enabled 设为 yes，或删除 lease",
    ),
    (
        (
            "with a lease every replica finds every alert, and by route {number} of daemon.alerts each would tell "
            "{name} of it: lead that route to alertmanager, and let Alertmanager choose the recipients"
        ),
        (
            "有 lease 时每个副本都会发现每条告警，按 daemon.alerts 的第 {number} 条路由会各通知 {name} 一次："
            "请让这条路由指向 alertmanager，由 Alertmanager 决定通知谁"
        ),
    ),
    (
        (
            "with a lease every replica finds every alert, and each would tell {name} of it: add {example} to "
            "daemon.alerts.receivers, which tells each alert once, and let it call {path} for the others"
        ),
        (
            "有 lease 时每个副本都会发现每条告警，会各通知 {name} 一次：请在 daemon.alerts.receivers 里加上 {example}，"
            "它对每条告警只通知一次，其他接收者由它调用 {path} 通知"
        ),
    ),
    (
        (
            "others can reach the page, and nothing says who may; name users or tokens in daemon.access "
            "(gpuwarden hash-password makes the password_hash), or allow viewing by all with anonymous: viewer"
        ),
        (
            "其他机器能访问网页，但没有写谁可以访问；请在 daemon.access 里写用户或令牌"
            "（password_hash 用 gpuwarden hash-password 生成），或用 anonymous: viewer 允许所有人查看"
        ),
    ),
    # Receivers and services
    (
        "is no address; write https://…, smtp://host:port for mail, or console",
        "不是地址；请写 https://…，邮件写 smtp://host:port，或写 console",
    ),
    ("is not complete; give url or url_file, or kind: console", "不完整；请写 url 或 url_file，或 kind: console"),
    ("is not complete; give url or url_file", "不完整；请写 url 或 url_file"),
    ("the address has to begin with https:// or http://", "地址必须以 https:// 或 http:// 开头"),
    (
        "the address has to begin with https:// or smtp://; or say what it is with kind",
        "地址必须以 https:// 或 smtp:// 开头；或用 kind 说明类型",
    ),
    (
        "the address of a WeCom robot ends with ?key=…; copy it whole from the robot's page",
        "企业微信机器人的地址以 ?key=… 结尾；请从机器人页面完整复制",
    ),
    ("the address cannot be read", "地址无法解析"),
    ("copy it whole from the robot's page", "请从机器人页面完整复制"),
    ("a receiver of kind {kind} has no address", "{kind} 类型的接收者没有地址"),
    (
        "a service of kind {kind} has an address that begins with {scheme}",
        "{kind} 类型的服务，地址以 {scheme} 开头",
    ),
    (
        "the address of a mail server is written smtp://host:port, or smtps://host:port",
        "邮件服务器的地址写作 smtp://host:port 或 smtps://host:port",
    ),
    ("an address holds no password; use password_file", "地址里不能有密码；请用 password_file"),
    (
        "a registry's address holds no user name or password; write https://host:port",
        "镜像仓库地址里不能有用户名和密码；请写 https://host:port",
    ),
    ("mail needs sender, and to or to_owners: true", "邮件需要 sender，以及 to 或 to_owners: true"),
    ("the template cannot be read: {reason}", "模板无法解析：{reason}"),
    (
        "{name} is an Alertmanager: it would be told what it tells us, for ever",
        "{name} 是 Alertmanager：它发来的告警会再发回给它，无休无止",
    ),
    # The text of the file
    ("column {column}: not valid YAML: {rest}", "第 {column} 列：不是合法的 YAML：{rest}"),
    ("not valid YAML: brackets are nested too deeply", "不是合法的 YAML：括号嵌套太深"),
    ("not valid YAML", "不是合法的 YAML"),
    ("a value cannot begin with this character", "值不能以这个字符开头"),
    ("no anchor (&name) defines this alias (*name)", "别名（*name）没有对应的锚点（&name）"),
    ("text that begins with {signs} needs quotes", "以 {signs} 开头的文本要加引号"),
    ("after | or > the text begins on the next line", "| 或 > 之后，文本从下一行开始"),
    (
        "check indentation, quotes and brackets here and in the line before",
        "请检查这一行和上一行的缩进、引号和括号",
    ),
    (
        "a ': ' where none can be; is a ':' missing in the line above, or the indentation wrong, or a quote?",
        "这里不能有 ': '；上一行是不是少了 ':'，或者缩进、引号不对？",
    ),
    (
        "the {bracket} that opens in line {line} is not closed, or a comma is missing",
        "第 {line} 行的 {bracket} 没有闭合，或少了逗号",
    ),
    (
        "the quote that opens in line {line} is not closed, or holds a wrong \\ escape",
        "第 {line} 行的引号没有闭合，或其中的 \\ 转义不对",
    ),
    ("a second document (---) begins here; there may be only one", "这里开始了第二个文档（---）；只能有一个"),
    ("a tab; YAML is indented with spaces only", "有制表符；YAML 只能用空格缩进"),
    ("this line has no ': '; write 'key: value'", "这一行没有 ': '；请写 'key: value'"),
    ("this line's indentation does not fit the lines above", "这一行的缩进与上面不一致"),
    ("a tag (!name) is not understood here", "这里不支持标签（!name）"),
    ("remove it", "请删除"),
    ("<<: takes an alias of a mapping, such as {example}", "<<: 后面是一个映射的别名，例如 {example}"),
    ("a key has to be plain text", "键必须是普通文本"),
    ("the value is not what its tag says", "值与它的标签不符"),
    ("nested more than {count} deep, or an alias of itself", "嵌套超过 {count} 层，或别名引用了自己"),
    ("more than {count} values, aliases expanded", "展开别名后超过 {count} 个值"),
    ("the character {code} is not allowed in YAML", "YAML 不允许字符 {code}"),
    (
        "a configuration is made of 'key: value' lines; this file holds a list",
        "配置由 'key: value' 组成；这个文件是一个列表",
    ),
    (
        "a configuration is made of 'key: value' lines; this file holds a single value",
        "配置由 'key: value' 组成；这个文件只有一个值",
    ),
    ("there is no such file", "文件不存在"),
    ("is a directory; name the file in it", "是目录；请写其中的文件"),
    (
        "cannot be read: permission denied; run as a user who may read it, or change its mode",
        "没有读取权限；请换有权限的用户，或修改文件权限",
    ),
    ("cannot be read: {reason}", "无法读取：{reason}"),
    ("is larger than 1 MiB; is this a configuration file?", "超过 1 MiB；这是配置文件吗？"),
    ("is not UTF-8 text; save the file with the encoding UTF-8", "不是 UTF-8 文本；请以 UTF-8 编码保存"),
    ("write for example {choices}", "例如 {choices}"),
    ("write {choices}", "请写 {choices}"),
    # The daemon and the API server
    (
        "no daemon answers on {address}; start one with gpuwarden daemon, or correct daemon.listen",
        "{address} 上没有 daemon 响应；请用 gpuwarden daemon 启动，或修正 daemon.listen",
    ),
    (
        "no daemon answers on {address}, and there is nothing else to ask ({reasons})",
        "{address} 上没有 daemon 响应，也没有其他数据来源（{reasons}）",
    ),
    (
        "no daemon answers on {address}, and the report needs its usage records; start one with {command}",
        "{address} 上没有 daemon 响应，而报告需要它的用量记录；请用 {command} 启动",
    ),
    ("no daemon answers on {address}, and {rest}", "{address} 上没有 daemon 响应，{rest}"),
    ("the API server rejects the credentials: {reason}", "API server 拒绝了凭据：{reason}"),
    ("the API server {host} does not respond: {reason}", "API server {host} 没有响应：{reason}"),
    ("there is no API server to ask: {rest}", "没有可以查询的 API server：{rest}"),
    ("switched off by daemon.kubernetes.enabled", "daemon.kubernetes.enabled 关闭了它"),
    (
        "name a kubeconfig in daemon.kubernetes.kubeconfig, or set daemon.kubernetes.enabled to auto",
        "请在 daemon.kubernetes.kubeconfig 里写 kubeconfig，或把 daemon.kubernetes.enabled 设为 auto",
    ),
    ("the daemon on {address} has not answered within {seconds} s", "{address} 上的 daemon 在 {seconds} 秒内没有响应"),
    (
        (
            "the daemon on {address} accepts connections but has not responded within {seconds} s; "
            "see its log, and restart it"
        ),
        "{address} 上的 daemon 接受连接，但 {seconds} 秒内没有响应；请查看它的日志并重启",
    ),
    (
        "the daemon on {address} does not accept the token in {path}, which is of another one",
        "{address} 上的 daemon 不接受 {path} 里的令牌，它属于另一个 daemon",
    ),
    ("cannot read the token of the daemon in {path} ({reason})", "无法读取 daemon 的令牌 {path}（{reason}）"),
    ("cannot use the token of the daemon in {path} ({reason})", "无法使用 daemon 的令牌 {path}（{reason}）"),
    (
        "run this as the daemon's user or with sudo, or configure a token in daemon.token_file",
        "请用 daemon 的用户或 sudo 执行，或在 daemon.token_file 里配置令牌",
    ),
    ("the daemon says: {rest}", "daemon 返回：{rest}"),
)
