// Writes with LevelDB itself what the tests say, one command a line on standard input:
//
//	open DIR COMPRESSION BUFFER BLOCK   compression 0 or 1, sizes in bytes
//	put KEY VALUE, del KEY              in hexadecimal; - is empty
//	begin, end                          puts and deletes between them are one batch
//	compact                             everything, into the lowest level that it needs
//	close                               and say so
//	leave                               end without closing, as a killed process
//	fill FIRST COUNT STEP SIZE          many rows with keys of 16 digits
//
// After each but put and del it writes "ok" to standard output. An error ends it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "leveldb/db.h"
#include "leveldb/write_batch.h"

static void check(const leveldb::Status& s) {
  if (!s.ok()) {
    std::cerr << s.ToString() << std::endl;
    exit(1);
  }
}

static std::string bytes(const std::string& hex) {
  std::string out;
  if (hex == "-") return out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

int main() {
  leveldb::DB* db = nullptr;
  leveldb::WriteBatch batch;
  bool batching = false;
  auto flush = [&] {
    if (!batching) {
      check(db->Write(leveldb::WriteOptions(), &batch));
      batch.Clear();
    }
  };
  std::string word;
  while (std::cin >> word) {
    if (word == "put") {
      std::string k, v;
      std::cin >> k >> v;
      batch.Put(bytes(k), bytes(v));
      flush();
      continue;
    }
    if (word == "del") {
      std::string k;
      std::cin >> k;
      batch.Delete(bytes(k));
      flush();
      continue;
    }
    if (word == "open") {
      std::string dir;
      leveldb::Options o;
      int compression;
      std::cin >> dir >> compression >> o.write_buffer_size >> o.block_size;
      o.create_if_missing = true;
      o.compression = static_cast<leveldb::CompressionType>(compression);
      check(leveldb::DB::Open(o, dir, &db));
    } else if (word == "begin") {
      batching = true;
    } else if (word == "end") {
      batching = false;
      flush();
    } else if (word == "compact") {
      db->CompactRange(nullptr, nullptr);
    } else if (word == "close") {
      delete db;
      db = nullptr;
    } else if (word == "leave") {
      std::cout << "ok" << std::endl;
      _exit(0);
    } else if (word == "fill") {
      long first, count, step, size;
      std::cin >> first >> count >> step >> size;
      std::string value(size, 0);
      unsigned long x = 88172645463325252ul;
      for (long i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%016ld", first + i * step);
        for (long j = 0; j < size; j++) {  // half of it can be packed
          if (j % 8 == 0) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
          value[j] = j % 8 < 4 ? static_cast<char>(x >> (8 * (j % 8))) : 'a';
        }
        batch.Put(key, value);
        if (i % 100 == 99 || i == count - 1) flush();
      }
    } else {
      std::cerr << "unknown command " << word << std::endl;
      return 1;
    }
    std::cout << "ok" << std::endl;
  }
  delete db;
}
