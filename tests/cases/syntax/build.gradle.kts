#!/usr/bin/env kotlin {
plugins {
    id("com.android.application") version "8.13.0"
    alias(libs.plugins.kotlin.compose)
    `kotlin-dsl`
}

android {
    namespace = "a.b"
    defaultConfig { versionName = "1.${providers.exec { commandLine("git", "rev-list", "--count", "HEAD") }
        .standardOutput.asText.get().trim()}" }
    buildTypes { getByName("release") { proguardFiles(getDefaultProguardFile("proguard-android.txt"), "rules.pro") } }
}

tasks.register<Copy>("copy") { from(layout.buildDirectory.dir("x")); include("**/*.txt"); exclude("**/it's/*") }
val regex = Regex("""\{"(\d+)"\}""")
dependencies { implementation(platform("a:b:1")) /* ) */ }
