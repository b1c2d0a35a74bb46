@file:OptIn(ExperimentalStdlibApi::class)
@file:Suppress("UNUSED", "it's { fine")

package a.b

import kotlin.math.*

/* one /* nested { */ still a comment " */
/** KDoc with `code {` and a "quote and it's apostrophe. */
typealias Handler<T> = context(Logger) suspend T.(Int) -> Unit

data object Nothing
@JvmInline value class Id(val raw: String)
fun interface Run { fun run(x: Int): String }
sealed interface Shape { data class Circle(val r: Double) : Shape; data object Dot : Shape }
enum class Kind(val sign: Char) { OPEN('{'), CLOSE('}'), QUOTE('"'), APOSTROPHE('\''), BACK('\\'), UNI('\u007B'); }

context(Logger)
fun foo(): Int = 3

context(logger: Logger, _: Clock)
private inline fun <reified T : Any, R> T.bar(crossinline f: (T) -> R, noinline g: () -> Unit = {}): R? where R : Any {
    val a = "plain $name and ${name.let { "${it}}" }} \${not} \$no {"
    val b = "a ${if (x) "b ${listOf("c", "}")[0]}" else """raw "${"}"}" """} d"
    val c = """raw \ "quotes" ""and { $a ${'$'}{no} ${"}"} it's"""
    val d = """ends with quotes """"
    val e = """""""
    val f2 = $$"""{"price": "$${price}", "literal": "${x}", "other": "$x"}"""
    val g2 = $$"one $$a and ${not a template {"
    val h = "dollar at the end $" + "$" + "$1" + "a$ b"
    val i = '"'.code + '\''.code + '$'.code + '{'.code
    val `odd { name` = 1; val `it's "so"` = 2
    label@ for (n in 1..<10) { if (n == 3) continue@label else break@label }
    return when (val r = f(this)) {
        is String if r.length > 3 -> null
        in setOf<Any>() -> r
        !is Int, null -> r.also { (it as? Run)?.run(1) ?: return@bar null }
        else -> { object : Run { override fun run(x: Int) = "}" }; r }
    }
}

operator fun Id.get(vararg keys: String): Map<String, List<Int>> = buildMap { keys.forEach { put(it, listOf(1)) } }
val lambda = fun(x: Int): Int { return x shl 1 and 0xFF_u.toInt() }
val ref = String::length to ::foo
val (first, second) = 1 to "a//b/*c*/"
suspend fun <T> T.run(block: suspend () -> T): T = block() // it's the end { " '
