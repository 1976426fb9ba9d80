# cmake -DLIST=FILE -DHOW=TEXT -DOUT=FILE -P build_id.cmake: a source file that gives a digest of the files in the list and
# of how they are compiled.
file(STRINGS ${LIST} files)
set(all "${HOW}")
foreach(file ${files})
  file(SHA256 ${file} digest)
  string(APPEND all " ${digest}")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT} "#include \"calibrate/build_id.h\"\n\nnamespace latte {\n\nconst char* build_id() { return \"${digest}\"; }\n\n}  // namespace latte\n")
